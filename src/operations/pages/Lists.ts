/** `/ops/keys`, `/ops/changes` and `/ops/audit`: API keys, transactions that hold changes back, and the audit log. */
import { Effect } from "effect"
import { type Content, h, link } from "../../http/Html.ts"
import type { ApiKey } from "../../keys/ApiKeys.ts"
import type { Entry } from "../AuditLog.ts"
import { highest, type Seen, Watch } from "../Figures.ts"
import * as Format from "../Format.ts"
import { badge, clamped, filterForm, id, lagTile, nextPage, none, section, small, table, tile } from "../Layout.ts"
import { OperatorStore, type Transaction } from "../OperatorStore.ts"
import { inTime, page, shownOr } from "../Page.ts"
import { linkTo } from "./Deletions.ts"

const day = 86_400_000

const lastUsed = ({ created_at, last_used_on, revoked_at }: ApiKey, now: number): Content => {
  if (last_used_on === null) {
    const isOld = revoked_at === null && now - Date.parse(created_at) > 30 * day
    return isOld ? badge("warning", "never") : none("never")
  }
  const days = Math.floor((now - Date.parse(last_used_on)) / day)
  const relative = days < 1 ? "today" : days === 1 ? "yesterday" : `${Format.count(days)} days ago`
  return [h("time", { datetime: last_used_on })(last_used_on), " ", small(relative)]
}

const keysTable = (rows: ReadonlyArray<ApiKey>, organization: string | undefined, now: number) =>
  table<ApiKey>({
    caption: "API keys",
    rows,
    key: (key) => key.id,
    empty:
      organization === undefined
        ? ["No API key yet. Make one: ", h("code")("keys create --organization ID --name NAME")]
        : `${organization} has no API key.`,
    columns: {
      Organization: ({ organization_id: of }) => id(of, link("/ops/keys", { organization: of })),
      Name: ({ name }) => clamped(name),
      Key: (key) => [id(`${key.prefix}…`), " ", small(key.id)],
      Created: ({ created_at }) => Format.moment(created_at, now),
      "Last used": (key) => lastUsed(key, now),
      State: ({ revoked_at: at }) =>
        at === null ? badge("fine", "active") : [badge("quiet", "revoked"), " ", small(Format.moment(at, now))]
    }
  })

const code = h("code")

export const keys = page(
  "/ops/keys",
  Effect.fnUntraced(function* (parameter) {
    const store = yield* OperatorStore
    const organization = parameter("organization")
    const list = yield* inTime(store.keys(organization, parameter("after")))
    return (now) => [
      filterForm("/ops/keys", [["organization", "Organization", organization]], "/ops/keys"),
      shownOr(list, ({ next, rows }) => [
        keysTable(rows, organization, now),
        nextPage("/ops/keys", { organization }, next)
      ]),
      h("p")(small("Make and revoke keys with the commands ", code("keys create"), " and ", code("keys revoke"), "."))
    ]
  })
)

const transactions = (rows: ReadonlyArray<Transaction>, now: number) =>
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
  const waiting = highest(seen, "practice_data_changes_waiting")
  const lag = highest(seen, "practice_data_changes_lag_seconds")
  return h("dl", { class: "tiles" })(
    lagTile("Changes held back", lag, "delay until readers see a change"),
    lagTile("Replica lag", highest(seen, "practice_data_replica_lag_seconds"), "of READ_DATABASE_URL"),
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
        shownOr(found, (rows) => transactions(rows, now))
      ),
      h("p")(small("To end one, follow ", h("a", { href: "/ops/guide#changes" })("Changes in the guide"), "."))
    ]
  })
)

const targetOf = ({ action, organization_id, target }: Entry) =>
  id(target, action.startsWith("task.") ? linkTo({ organization_id, id: target }) : undefined)

/** The time and the author of an entry of the audit log. */
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
            Target: targetOf,
            Organization: ({ organization_id: of }) => id(of)
          }
        }),
        nextPage("/ops/audit", {}, next)
      ])
  })
)
