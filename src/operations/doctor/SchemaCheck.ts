/** The comparison of the objects of a database with those that the migrations make, and the statements that mend it. */
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import * as Catalog from "../../database/Catalog.ts"
import * as Distribution from "../../database/Distribution.ts"
import { fail } from "./Check.ts"

type Part = Catalog.Part

const keyOf = ({ kind, name, of }: Pick<Part, "kind" | "name" | "of">) => `${kind} ${of} ${name}`

/** A definition without what differs between databases: the base of the order of changes, and the login that migrated. */
const comparable = ({ definition, name }: Part) =>
  (name.endsWith(".change_base()") ? definition.replace(/RETURN .*/, "") : definition).replace("TO '$user', ", "TO ")

/** The migrations do not validate some constraints, which may be validated later. */
const isSame = (found: Part, part: Part) =>
  comparable(found) === comparable(part) &&
  (found.state === part.state || (part.kind === "constraint" && found.state === "true"))

const isOfFeed = ({ definition, kind }: Part) =>
  kind === "trigger" && /\.records?_(changed|removed|truncated)\(/.test(definition)

/** True of a trigger that distributing the tables drops. */
const isDropped = (part: Part) => isOfFeed(part) && !part.definition.includes("BEFORE UPDATE")

const nameOf = ({ kind, name, of }: Part) => {
  if (kind === "column") return `column ${of}.${name}`
  return `${kind} ${name}${kind === "constraint" || kind === "trigger" ? ` of ${of}` : ""}`
}

/** The statement that makes a part as the migrations do, in the place of one that differs. */
const remedyOf = (part: Part, isThere: boolean, { parts, privileges, schema }: Catalog.Catalog): string => {
  const { definition, kind, name, of, state } = part
  const isOfDomain = parts.some((one) => one.kind === "domain" && one.name === of)
  const alter = `alter ${isOfDomain ? "domain" : "table"} ${schema}.${of}`
  switch (kind) {
    case "index":
      return `${isThere ? `drop index concurrently ${schema}.${name}; ` : ""}${definition.replace("INDEX", "INDEX CONCURRENTLY")}`
    case "constraint":
      return `${isThere ? `${alter} drop constraint ${name}; ` : ""}${alter} add constraint ${name} ${definition}`
    case "trigger": {
      // What was written while a trigger of the feed was off is no change, so the order begins anew.
      const enabled = `${alter} enable ${{ A: "always ", R: "replica " }[state] ?? ""}trigger ${name}`
      const enable = isOfFeed(part) ? `select ${schema}.change_begin()` : enabled
      return `${definition.replace("TRIGGER", "OR REPLACE TRIGGER")}; ${enable}`
    }
    case "function": {
      const granted = privileges.filter(({ object }) => object === `function ${name}`)
      const grants = granted.map((each) => `grant ${Catalog.textOf(each)} to ${each.grantee}`)
      // Everyone may call a new function.
      const isPublic = granted.some(({ grantee }) => grantee === "public")
      return [definition, ...(isPublic ? [] : [`revoke all on function ${name} from public`, ...grants])].join(";\n")
    }
    default:
      return isThere ? `Alter it to: ${definition}` : "Restore it from a backup: it had data."
  }
}

/** The objects that are missing or different. Others are the operator's own. */
export const check = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  catalog: Catalog.Catalog,
  migrated: Catalog.Catalog
) {
  const found = new Map(catalog.parts.map((part) => [keyOf(part), part]))
  const isDistributed = yield* Distribution.ask(sql)
  /** Tables and domains, whose parts are missing too. */
  const missing = new Set(
    migrated.parts.flatMap((part) => (part.of === "" && !found.has(keyOf(part)) ? [part.name] : []))
  )
  return migrated.parts.flatMap((part) => {
    if (missing.has(part.of) || (isDistributed && isDropped(part))) return []
    const now = found.get(keyOf(part))
    if (now !== undefined && isSame(now, part)) return []
    const problem = now === undefined ? "is missing" : "is not as the migrations make it"
    return [fail(`The ${nameOf(part)} ${problem}.`, remedyOf(part, now !== undefined, migrated))]
  })
})
