/** `/ops/changes` and `/ops/audit`: transactions that hold changes back, and the audit log. */
import { Effect } from "effect"
import { type Content, h } from "../../http/Html.ts"
import type { Entry } from "../Commands.ts"
import { changesLag, highest, type Seen, Watch } from "../Figures.ts"
import * as Format from "../Format.ts"
import { clamped, id, lagTile, nextPage, none, section, small, table, tile } from "../Layout.ts"
import { OperatorStore, type Transaction } from "../OperatorStore.ts"
import { inTime, page, shownOr } from "../Page.ts"
import { linkTo } from "./Deletions.ts"

const transactions = (now: number) => (rows: ReadonlyArray<Transaction>) =>
  table<Transaction>({
    caption: "Open transactions that have written",
    rows,
    key: ({ pid, prepared }) => `${pid ?? ""} ${prepared ?? ""}`,
    empty: "None is open.",
    columns: {
      Transaction: ({ pid, prepared }) => (prepared === null ? `pid ${pid ?? "unknown"}` : ["prepared ", id(prepared)]),
      Since: ({ since }) => Format.moment(since, now),
      State: ({ state }) => state ?? none("not visible to this role"),
      Database: ({ database }) => database ?? undefined,
      User: ({ user }) => user ?? undefined,
      Application: ({ application }) => clamped(application)
    }
  })

const changesTiles = (seen: Seen) => {
  const waiting = highest(seen.processes, "practice_data_changes_waiting")
  return h("dl", { class: "tiles" })(
    lagTile("Changes held back", changesLag(seen), "delay until readers see a change"),
    lagTile("Replica lag", highest(seen.processes, "practice_data_replica_lag_seconds"), "of READ_DATABASE_URL"),
    tile("Readers waiting", waiting === undefined ? "–" : Format.count(waiting), "for the next change, in long polls")
  )
}

export const changes = page(
  "/ops/changes",
  Effect.fnUntraced(function* () {
    const [{ look }, { holders }] = [yield* Watch, yield* OperatorStore]
    const [seen, found] = yield* Effect.all([look, inTime(holders)], { concurrency: 2 })
    return (now) => [
      changesTiles(seen),
      section(
        "holders",
        "Open transactions",
        h("p")(
          "Readers of a replica get changes that were committed after the oldest of these began once it ends.",
          " They have written, in any database of the cluster. Oldest first."
        ),
        shownOr(found, transactions(now))
      ),
      h("p")(small("To end one, follow ", h("a", { href: "/ops/guide#changes" })("Changes in the guide"), "."))
    ]
  })
)

export const authorship = (now: number) => ({
  When: ({ at }: Entry) => Format.moment(at, now),
  Who: ({ actor, source }: Entry): Content => [actor, " ", small(source)]
})

export const audit = page(
  "/ops/audit",
  Effect.fnUntraced(function* (parameter) {
    const after = parameter("after")
    const list = yield* inTime((yield* OperatorStore).audit(after))
    return (now) =>
      shownOr(list, ({ next, rows }) => [
        table<Entry>({
          caption: "Changes by operators, newest first",
          rows,
          key: (entry) => entry.id,
          empty: after === undefined ? "No change yet, from this page or a command." : "There are no more.",
          columns: {
            ...authorship(now),
            What: ({ action }) => id(action),
            Result: ({ result }) => result,
            Target: ({ action, organization_id, target }) =>
              id(target, action.startsWith("task.") ? linkTo({ organization_id, id: target }) : undefined),
            Organization: ({ organization_id: of }) => id(of)
          }
        }),
        nextPage("/ops/audit", {}, next)
      ])
  })
)
