/** Compares the objects of a database with those that the migrations make. */
import { Array, Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import * as Catalog from "../../database/Catalog.ts"
import * as Distribution from "../../database/Distribution.ts"
import { fail, type Said } from "./Finding.ts"

type Part = Catalog.Part

const keyOf = ({ kind, name, of }: Pick<Part, "kind" | "name" | "of">) => `${kind} ${of} ${name}`

/** A definition without what is another in each database: the base of the order of changes, and who migrated. */
const comparable = ({ definition, name }: Part) =>
  (name.endsWith(".change_base()") ? definition.replace(/RETURN .*/, "") : definition).replace("TO '$user', ", "TO ")

const isOfFeed = (definition: string) => /\.records?_(changed|removed|truncated)\(/.test(definition)

/** A part, for people. */
const nameOf = ({ kind, name, of }: Part) => {
  if (kind === "function" || kind === "domain" || kind === "index") return `${kind} ${name}`
  return kind === "column"
    ? `column ${of}.${name}`
    : `${kind === "default" || kind === "not null" ? `${kind} of column` : kind} ${name} of ${of}`
}

const wrongStates: Partial<Record<Part["kind"], string>> = {
  constraint: "is not validated",
  index: "is not valid",
  trigger: "is disabled, or fires at other times"
}

/** The statements that mend parts of a schema. */
const mending = ({ privileges, schema }: Catalog.Catalog, expected: ReadonlyMap<string, Part>) => {
  const relationOf = ({ of }: Part) => `${schema}.${of}`
  const alter = (part: Part) => {
    const isDomain = expected.has(keyOf({ kind: "domain", of: "", name: part.of }))
    return `alter ${isDomain ? "domain" : "table"} ${relationOf(part)}`
  }
  const columnOf = (part: Part) => {
    const value = expected.get(keyOf({ ...part, kind: "default" }))
    const required = expected.has(keyOf({ ...part, kind: "not null" }))
    return `${part.name} ${part.definition}${value === undefined ? "" : ` default ${value.definition}`}${required ? " not null" : ""}`
  }
  /** What was written while a trigger of a feed was off is no change, so its order begins anew. */
  const enable = (part: Part) =>
    isOfFeed(part.definition)
      ? `select ${schema}.change_begin()`
      : `${alter(part)} enable ${{ A: "always ", R: "replica " }[part.state] ?? ""}trigger ${part.name}`
  /** Gives a new object the privileges that it has to have; everyone may call a new function. */
  const grant = (object: string, column?: string) => {
    const given = privileges.filter(
      (each) => each.object === object && (each.columns?.includes(column ?? "") ?? !column)
    )
    if (given.some(({ grantee }) => grantee === "public")) return []
    const all = given.map(
      (each) => `grant ${Catalog.textOf({ ...each, columns: column ? [column] : null })} to ${each.grantee}`
    )
    return [...(object.startsWith("function ") ? [`revoke all on ${object} from public`] : []), ...all]
  }
  const make = (part: Part): string => {
    switch (part.kind) {
      case "domain":
        return `create domain ${schema}.${part.name} as ${part.definition}`
      case "function":
        return [part.definition, ...grant(`function ${part.name}`)].join(";\n")
      case "column":
        return [`${alter(part)} add column ${columnOf(part)}`, ...grant(relationOf(part), part.name)].join("; ")
      case "default":
        return `${alter(part)} alter column ${part.name} set default ${part.definition}`
      case "not null":
        return `${alter(part)} alter column ${part.name} set not null`
      case "constraint":
        return `${alter(part)} add constraint ${part.name} ${part.definition}`
      case "index":
        return part.definition.replace("INDEX", "INDEX CONCURRENTLY")
      case "trigger":
        return `${part.definition}; ${enable(part)}`
    }
  }
  return {
    makeTable: (table: string) => {
      const of = [...expected.values()].filter((part) => part.of === table)
      const columns = of.filter(({ kind }) => kind === "column").map(columnOf)
      const others = of.filter(({ kind }) => kind === "constraint" || kind === "index" || kind === "trigger").map(make)
      const relation = `${schema}.${table}`
      const grants = privileges
        .filter(({ object }) => object === relation)
        .map((each) => `grant ${Catalog.textOf(each)} to ${each.grantee}`)
      return [`create table ${relation} (${columns.join(", ")})`, ...others, ...grants].join("; ")
    },
    make,
    redo: (part: Part) => {
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

/** The trigger is one that distributing the tables drops. */
const isDropped = ({ definition, kind }: Part) =>
  kind === "trigger" && isOfFeed(definition) && !definition.includes("BEFORE UPDATE")

const tablesOf = ({ parts }: Catalog.Catalog) =>
  Array.dedupe(parts.filter(({ kind }) => kind === "column").map(({ of }) => of))

/** The objects of a migrated database. Others are the operator's own. */
export const check = Effect.fnUntraced(function* (
  sql: PgClient.PgClient,
  catalog: Catalog.Catalog,
  migrated: Catalog.Catalog
) {
  const expected = new Map(migrated.parts.map((part) => [keyOf(part), part]))
  const found = new Map(catalog.parts.map((part) => [keyOf(part), part]))
  const missing = Array.difference(tablesOf(migrated), tablesOf(catalog))
  const isDistributed = yield* Distribution.ask(sql)
  const statements = mending(migrated, expected)
  const said: Array<Said> = missing.map((table) =>
    fail(`The table ${table} is missing.`, `Restore it, or make an empty one: ${statements.makeTable(table)}`)
  )
  for (const part of expected.values()) {
    if (missing.includes(part.of) || (isDistributed && isDropped(part))) continue
    const { kind } = part
    const now = found.get(keyOf(part))
    if (now === undefined) {
      // A column is made with them.
      if ((kind === "default" || kind === "not null") && !found.has(keyOf({ ...part, kind: "column" }))) continue
      said.push(fail(`The ${nameOf(part)} is missing.`, statements.make(part)))
    } else if (comparable(now) !== comparable(part)) {
      said.push(fail(`The ${nameOf(part)} is not as the migrations make it.`, statements.redo(part)))
    } else if (now.state !== part.state) {
      said.push(fail(`The ${nameOf(part)} ${wrongStates[kind]}.`, statements.restore(part)))
    }
  }
  return said
})
