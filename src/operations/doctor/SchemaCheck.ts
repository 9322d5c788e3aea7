/** The comparison of the objects of a database with those that the migrations make, and the statements that mend it. */
import { Array, Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import * as Catalog from "../../database/Catalog.ts"
import * as Distribution from "../../database/Distribution.ts"
import { type Fact, fail } from "./Check.ts"

type Part = Catalog.Part

const keyOf = ({ kind, name, of }: Pick<Part, "kind" | "name" | "of">) => `${kind} ${of} ${name}`

/** A definition without what differs between databases: the base of the order of changes, and the login that migrated. */
const comparable = ({ definition, name }: Part) =>
  (name.endsWith(".change_base()") ? definition.replace(/RETURN .*/, "") : definition).replace("TO '$user', ", "TO ")

const isOfFeed = ({ definition }: Part) => /\.records?_(changed|removed|truncated)\(/.test(definition)

/** True of a trigger that distributing the tables drops. */
const isDropped = (part: Part) =>
  part.kind === "trigger" && isOfFeed(part) && !part.definition.includes("BEFORE UPDATE")

const nameOf = ({ kind, name, of }: Part) => {
  if (kind === "function" || kind === "domain" || kind === "index") return `${kind} ${name}`
  if (kind === "column") return `column ${of}.${name}`
  return `${kind}${kind === "default" || kind === "not null" ? " of column" : ""} ${name} of ${of}`
}

const wrongStates: Partial<Record<Part["kind"], string>> = {
  constraint: "is not validated",
  index: "is not valid",
  trigger: "is disabled, or fires at other times"
}

const grantsOf = (given: ReadonlyArray<Catalog.Privilege>) =>
  given.map((each) => `grant ${Catalog.textOf(each)} to ${each.grantee}`)

/** The statements that mend parts of a schema. */
const remedies = ({ privileges, schema }: Catalog.Catalog, expected: ReadonlyMap<string, Part>) => {
  const alter = ({ of }: Part) =>
    `alter ${expected.has(keyOf({ kind: "domain", of: "", name: of })) ? "domain" : "table"} ${schema}.${of}`
  const columnOf = (part: Part) => {
    const value = expected.get(keyOf({ ...part, kind: "default" }))
    const required = expected.has(keyOf({ ...part, kind: "not null" })) ? " not null" : ""
    return `${part.name} ${part.definition}${value === undefined ? "" : ` default ${value.definition}`}${required}`
  }
  const grantsOn = (object: string) => grantsOf(privileges.filter((each) => each.object === object))
  /** Enables a trigger. What was written while one of a feed was off is no change, so its order begins anew. */
  const enable = (part: Part) =>
    isOfFeed(part)
      ? `select ${schema}.change_begin()`
      : `${alter(part)} enable ${{ A: "always ", R: "replica " }[part.state] ?? ""}trigger ${part.name}`
  const makers: Readonly<Record<Part["kind"], (part: Part) => string>> = {
    domain: ({ definition, name }) => `create domain ${schema}.${name} as ${definition}`,
    function: ({ definition, name }) => {
      const object = `function ${name}`
      // Everyone may call a new function.
      const isPublic = privileges.some((each) => each.object === object && each.grantee === "public")
      return [definition, ...(isPublic ? [] : [`revoke all on ${object} from public`, ...grantsOn(object)])].join(";\n")
    },
    column: (part) => {
      const given = privileges.filter(
        ({ columns, object }) => object === `${schema}.${part.of}` && columns?.includes(part.name) === true
      )
      const grants = grantsOf(given.map((each) => ({ ...each, columns: [part.name] })))
      return [`${alter(part)} add column ${columnOf(part)}`, ...grants].join("; ")
    },
    default: (part) => `${alter(part)} alter column ${part.name} set default ${part.definition}`,
    "not null": (part) => `${alter(part)} alter column ${part.name} set not null`,
    constraint: (part) => `${alter(part)} add constraint ${part.name} ${part.definition}`,
    index: ({ definition }) => definition.replace("INDEX", "INDEX CONCURRENTLY"),
    trigger: (part) => `${part.definition}; ${enable(part)}`
  }
  const make = (part: Part) => makers[part.kind](part)
  return {
    make,
    makeTable: (table: string) => {
      const of = [...expected.values()].filter((part) => part.of === table)
      const columns = of.filter(({ kind }) => kind === "column").map(columnOf)
      const others = of.filter(({ kind }) => kind === "constraint" || kind === "index" || kind === "trigger").map(make)
      const created = `create table ${schema}.${table} (${columns.join(", ")})`
      return [created, ...others, ...grantsOn(`${schema}.${table}`)].join("; ")
    },
    replace: (part: Part) => {
      if (part.kind === "column") return `${alter(part)} alter column ${part.name} type ${part.definition}`
      if (part.kind === "constraint") return `${alter(part)} drop constraint ${part.name}; ${make(part)}`
      if (part.kind === "index") return `drop index concurrently ${schema}.${part.name}; ${make(part)}`
      return part.kind === "trigger" ? make(part).replace("TRIGGER", "OR REPLACE TRIGGER") : make(part)
    },
    restore: (part: Part) => {
      if (part.kind === "constraint") return `${alter(part)} validate constraint ${part.name}`
      return part.kind === "index" ? `reindex index concurrently ${schema}.${part.name}` : enable(part)
    }
  }
}

const tablesOf = ({ parts }: Catalog.Catalog) =>
  Array.dedupe(parts.filter(({ kind }) => kind === "column").map(({ of }) => of))

/** The objects that are missing or different. Others are the operator's own. */
export const check = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  catalog: Catalog.Catalog,
  migrated: Catalog.Catalog
) {
  const expected = new Map(migrated.parts.map((part) => [keyOf(part), part]))
  const found = new Map(catalog.parts.map((part) => [keyOf(part), part]))
  const missing = Array.difference(tablesOf(migrated), tablesOf(catalog))
  const isDistributed = yield* Distribution.ask(sql)
  const { make, makeTable, replace, restore } = remedies(migrated, expected)
  const factsOf = (part: Part): ReadonlyArray<Fact> => {
    if (missing.includes(part.of) || (isDistributed && isDropped(part))) return []
    const now = found.get(keyOf(part))
    if (now === undefined) {
      // A missing column is made with its default and not null.
      const isOfColumn = part.kind === "default" || part.kind === "not null"
      if (isOfColumn && !found.has(keyOf({ ...part, kind: "column" }))) return []
      return [fail(`The ${nameOf(part)} is missing.`, make(part))]
    }
    if (comparable(now) !== comparable(part)) {
      return [fail(`The ${nameOf(part)} is not as the migrations make it.`, replace(part))]
    }
    // Some constraints are not validated by the migrations, and may be.
    if (part.kind === "constraint" && now.state === "true") return []
    return now.state === part.state ? [] : [fail(`The ${nameOf(part)} ${wrongStates[part.kind]}.`, restore(part))]
  }
  return [
    ...missing.map((table) =>
      fail(`The table ${table} is missing.`, `Restore it, or make an empty one: ${makeTable(table)}`)
    ),
    ...migrated.parts.flatMap(factsOf)
  ]
})
