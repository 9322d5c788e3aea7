/** `/ops/runbook` and `/ops/guide`: the documents for operators. An alert links to its row in the runbook. */
import { readFileSync } from "node:fs"
import { Marked } from "marked"
import { Html } from "../../http/Html.ts"
import { idOf } from "../../http/Markdown.ts"
import { respond } from "../Page.ts"

const paths = { "RUNBOOK.md": "/ops/runbook", "README.md": "/ops/guide" } as const
type File = keyof typeof paths

const isFile = (name: string): name is File => Object.hasOwn(paths, name)

const markdown = new Marked({
  renderer: {
    heading({ depth, text, tokens }) {
      return depth === 1 ? "" : `<h${depth} id="${idOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>`
    },
    // Other files are not on this listener.
    link({ href, tokens }) {
      const text = this.parser.parseInline(tokens)
      const [name = "", anchor] = href.split("#")
      const path = isFile(name) ? paths[name] : name
      if (path !== "" && !path.startsWith("/")) return text
      return `<a href="${path}${anchor === undefined ? "" : `#${anchor}`}">${text}</a>`
    }
  }
})

const page = (file: File) => {
  const source = readFileSync(new URL(`../${file}`, import.meta.url), "utf8")
  let content: Html | undefined
  const view = () => (content ??= Html.markup(markdown.parse(source, { async: false })))
  return respond({ place: paths[file], isLive: false, view })
}

export const runbook = page("RUNBOOK.md")
export const guide = page("README.md")
