/** `/ops/changes`: how far the changes that readers follow are behind, and what holds them back. */
import { Result } from "effect"
import * as Format from "../Format.ts"
import { type Content, type Html, html } from "../Html.ts"
import { section, table, tile, unreadable } from "../Layout.ts"
import type { Transaction, Unreadable } from "../OperatorStore.ts"
import { highest, type Seen } from "../Watch.ts"

export interface Shown {
  readonly now: number
  readonly seen: Seen
  readonly holders: Result.Result<ReadonlyArray<Transaction>, Unreadable>
}

const seconds = (name: string, lag: number | undefined, about: Content) =>
  tile(
    name,
    lag === undefined ? "–" : Format.span(lag * 1000),
    lag === undefined ? "not measured here" : about,
    lag === undefined || lag <= 10 ? "fine" : lag > 60 ? "problem" : "warning"
  )

/** The page, below its heading. */
export const body = ({ holders, now, seen }: Shown): Html => {
  const waiting = highest(seen, "practice_data_changes_waiting")
  return html`<dl class="tiles">
      ${seconds(
        "Changes held back",
        highest(seen, "practice_data_changes_lag_seconds"),
        "for so long, what was committed since then is not told"
      )}
      ${seconds("Replica behind", highest(seen, "practice_data_replica_lag_seconds"), "of READ_DATABASE_URL")}
      ${tile("Readers waiting", waiting === undefined ? "–" : Format.count(waiting), "for the next change, in long polls")}
    </dl>
    ${section("holders", "What may hold them back", [
      html`<p>
        Transactions that have written and are still open, in any database of the cluster, oldest first. What is
        committed after the oldest of them began is told when it ends.
      </p>`,
      Result.isFailure(holders)
        ? unreadable(holders.failure.message)
        : table<Transaction>({
            caption: "Open transactions that have written",
            rows: holders.success,
            keyOf: ({ pid, prepared }) => `${pid ?? ""} ${prepared ?? ""}`,
            none: "None is open.",
            columns: [
              {
                title: "Transaction",
                isName: true,
                value: ({ pid, prepared }) =>
                  prepared === null ? `pid ${pid ?? "unknown"}` : html`prepared <span class="id">${prepared}</span>`
              },
              { title: "Since", value: ({ since }) => Format.moment(since, now) },
              { title: "State", value: ({ state }) => state ?? html`<span class="none">not shown to this role</span>` },
              { title: "Database", value: ({ database }) => database },
              { title: "User", value: ({ user }) => user },
              { title: "Application", value: ({ application }) => html`<span class="text">${application}</span>` }
            ]
          })
    ])}
    <p>
      <small
        >What to do about each is told under Changes in scripts/operations/README.md, with the statements to look
        further.</small
      >
    </p>`
}
