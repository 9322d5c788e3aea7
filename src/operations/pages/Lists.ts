/** `/ops/keys`, `/ops/changes` and `/ops/audit`: API keys, transactions that hold changes back, and the audit log. */
import { Effect } from "effect"
import { type Content, h, link } from "../../http/Html.ts"
import type { ApiKey } from "../../keys/ApiKeys.ts"
import type { Entry } from "../AuditLog.ts"
import { highest, type Seen, Watch } from "../Figures.ts"
import * as Format from "../Format.ts"
import { badge, clamped, filterForm, id, nextPage, none, section, small, table, tile } from "../Layout.ts"
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

export const keys = Effect.gen(function* () {
  const store = yield* OperatorStore
  return page(
    "/ops/keys",
    (parameter) => {
      const organization = parameter("organization")
      return Effect.map(inTime(store.keys(organization, parameter("after"))), (list) => ({ organization, list }))
    },
    ({ list, organization }, now) => [
      filterForm("/ops/keys", [["organization", "Organization", organization]], "/ops/keys"),
      shownOr(list, ({ next, rows }) => [
        keysTable(rows, organization, now),
        nextPage(next === undefined ? undefined : link("/ops/keys", { organization, after: next }))
      ]),
      h("p")(
        small(
          "Make and revoke keys with the commands ",
          h("code")("keys create"),
          " and ",
          h("code")("keys revoke"),
          "."
        )
      )
    ]
  )
})

const lagTile = (name: string, seconds: number | undefined, about: string) =>
  seconds === undefined
    ? tile(name, "–", "not measured here")
    : tile(name, Format.span(seconds * 1000), about, seconds <= 10 ? "fine" : seconds > 60 ? "problem" : "warning")

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
  return h("dl", { class: "tiles" })(
    lagTile(
      "Changes held back",
      highest(seen, "practice_data_changes_lag_seconds"),
      "delay until readers see a change"
    ),
    lagTile("Replica lag", highest(seen, "practice_data_replica_lag_seconds"), "of READ_DATABASE_URL"),
    tile("Readers waiting", waiting === undefined ? "–" : Format.count(waiting), "for the next change, in long polls")
  )
}

export const changes = Effect.gen(function* () {
  const { look } = yield* Watch
  const { holders } = yield* OperatorStore
  return page(
    "/ops/changes",
    () => Effect.all({ seen: look, found: inTime(holders) }, { concurrency: 2 }),
    ({ found, seen }, now) => [
      changesTiles(seen),
      section(
        "holders",
        "Open transactions",
        h("p")(
          "Changes committed after the oldest of these began arrive once it ends.",
          " They have written, in any database of the cluster. Oldest first."
        ),
        shownOr(found, (rows) => transactions(rows, now))
      ),
      h("p")(small("To end one, follow Changes in scripts/operations/README.md."))
    ]
  )
})

const targetOf = ({ action, organization_id, target }: Entry) =>
  id(target, action.startsWith("task.") ? linkTo({ organization_id, id: target }) : undefined)

export const audit = Effect.gen(function* () {
  const store = yield* OperatorStore
  return page(
    "/ops/audit",
    (parameter) => {
      const after = parameter("after")
      return Effect.map(inTime(store.audit(after)), (list) => ({ list, isContinued: after !== undefined }))
    },
    ({ isContinued, list }, now) =>
      shownOr(list, ({ next, rows }) => [
        table<Entry>({
          caption: "Changes by operators, newest first",
          rows,
          key: (entry) => entry.id,
          empty: isContinued ? "There are no more." : "No change yet, from this page or a command.",
          columns: {
            When: ({ at }) => Format.moment(at, now),
            Who: ({ actor, source }) => [actor, " ", small(source)],
            What: ({ action }) => id(action),
            Result: ({ result }) => result,
            Target: targetOf,
            Organization: ({ organization_id: of }) => id(of)
          }
        }),
        nextPage(next === undefined ? undefined : link("/ops/audit", { after: next }))
      ])
  )
})
