/** `/ops/runbook` and `/ops/guide`: the documents for operators. An alert links to its row in the runbook. */
import { readFileSync } from "node:fs"
import { Marked } from "marked"
import { Html } from "../../http/Html.ts"
import { idOf } from "../../http/Markdown.ts"
import { respond } from "../Page.ts"

const paths: Readonly<Record<string, string>> = { "RUNBOOK.md": "/ops/runbook", "README.md": "/ops/guide" }

const markdown = new Marked({
  renderer: {
    heading({ depth, text, tokens }) {
      return depth === 1 ? "" : `<h${depth} id="${idOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>`
    },
    // Other files are not on this listener.
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens)
      const [, name = "", anchor = ""] = /^([^#]*)(.*)$/.exec(href) ?? []
      const path = paths[name] ?? name
      return path === "" || path.startsWith("/") ? `<a href="${path}${anchor}">${text}</a>` : text
    }
  }
})

const page = (place: "/ops/runbook" | "/ops/guide", file: string) => {
  const source = readFileSync(new URL(`../${file}`, import.meta.url), "utf8")
  let content: Html | undefined
  const view = () => (content ??= Html.markup(markdown.parse(source, { async: false })))
  return ["GET", place, respond({ place, isLive: false, view })] as const
}

export const pages = [page("/ops/runbook", "RUNBOOK.md"), page("/ops/guide", "README.md")]
