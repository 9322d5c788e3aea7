/** `/ops/audit`: what operators changed. */
import { Result } from "effect"
import type { Entry } from "../AuditLog.ts"
import * as Format from "../Format.ts"
import { type Html, html, link } from "../Html.ts"
import { table, unreadable } from "../Layout.ts"
import type { Page, Unreadable } from "../OperatorStore.ts"
import { linkTo } from "./Deletions.ts"

export interface Shown {
  readonly now: number
  readonly isContinued: boolean
  readonly page: Result.Result<Page<Entry>, Unreadable>
}

const target = ({ action, organization_id, target: id }: Entry) =>
  action.startsWith("task.")
    ? html`<a class="id" href="${linkTo({ organization_id, id })}">${id}</a>`
    : html`<span class="id">${id}</span>`

/** The page, below its heading. */
export const body = ({ isContinued, now, page }: Shown): Html =>
  Result.isFailure(page)
    ? unreadable(page.failure.message)
    : html`${table<Entry>({
        caption: "What operators changed, newest first",
        rows: page.success.rows,
        keyOf: ({ id }) => id,
        none: isContinued ? "There are no more." : "Nothing has been changed yet, on this page or by a command.",
        columns: [
          { title: "When", isName: true, value: ({ at }) => Format.moment(at, now) },
          { title: "Who", value: ({ actor, source }) => html`${actor} <small>${source}</small>` },
          { title: "What", value: ({ action }) => html`<span class="id">${action}</span>` },
          { title: "Result", value: ({ result }) => result },
          { title: "Target", value: target },
          { title: "Organization", value: ({ organization_id }) => html`<span class="id">${organization_id}</span>` }
        ]
      })}${
        page.success.next !== undefined &&
        html`<p class="more">
          <a class="button" href="${link("/ops/audit", { after: page.success.next })}">Next page</a>
        </p>`
      }`
