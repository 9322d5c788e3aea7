/** `/ops/runbook` and `/ops/guide`: the documents for operators. An alert links to its row in the runbook. */
import { readFileSync } from "node:fs"
import { type Html, markdown } from "../../http/Html.ts"
import { respond } from "../Page.ts"

const paths: Readonly<Record<string, string>> = { "RUNBOOK.md": "/ops/runbook", "README.md": "/ops/guide" }

const page = (place: "/ops/runbook" | "/ops/guide", file: string) => {
  const source = readFileSync(new URL(`../${file}`, import.meta.url), "utf8")
  // The page shows its title.
  const text = source.slice(source.indexOf("\n"))
  let content: Html | undefined
  const view = () =>
    (content ??= markdown(text, {
      // Other files are not on this listener.
      link({ href, tokens }) {
        const label = this.parser.parseInline(tokens)
        const [, name = "", anchor = ""] = /^([^#]*)(.*)$/.exec(href) ?? []
        const path = paths[name] ?? name
        return path === "" || path.startsWith("/") ? `<a href="${path}${anchor}">${label}</a>` : label
      }
    }))
  return ["GET", place, respond({ place, isLive: false, view })] as const
}

export const pages = [page("/ops/runbook", "RUNBOOK.md"), page("/ops/guide", "README.md")]
