/** Which group an organization and an API key belong to, as the groups' databases say. */
import { hash } from "node:crypto"
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Order, Stream } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { connect } from "../../../src/database/Database.ts"
import { reasonOf } from "../../../src/database/SqlFailure.ts"
import { type Groups, MapsRefused } from "./Groups.ts"

/** The backend that answers deliveries for an organization that is being moved. */
const moving = "moving"

/** How many names a message lists. */
const named = 10

/** A line of a map: what haproxy looks up, and the backend. */
export interface Line {
  readonly key: string
  readonly backend: string
}

interface Group {
  readonly name: string
  readonly sql: PgClient.PgClient
}

/** Connects to the database of each group. */
export const open = ({ groups }: Groups) =>
  Effect.forEach(Object.entries(groups), ([name, { database }]) =>
    Effect.map(
      connect({
        url: database,
        name: `the database of ${name}`,
        applicationName: "practice-data-maps",
        maxConnections: 1,
        connectTimeout: "10 seconds",
        statementTimeout: "5 minutes"
      }),
      (sql): Group => ({ name, sql })
    )
  )

const refusedBy =
  ({ name }: Group) =>
  (error: SqlError) =>
    new MapsRefused({ message: `The database of ${name} does not say what it has: ${reasonOf(error)}` })

// Each value of the first column of an index, one descent for each.
const distinct = (table: string) => `
  select organization_id from (
    with recursive owner as (
      (select organization_id from ${table} order by organization_id limit 1)
      union all
      select (select t.organization_id from ${table} t where t.organization_id > owner.organization_id
              order by t.organization_id limit 1)
      from owner where owner.organization_id is not null
    ) select organization_id from owner where organization_id is not null
  ) ${table}_owners`

// An organization whose deliveries went elsewhere would keep what they delete: so it counts where it has any of these.
const owners = `
  select organization_id from organizations
  union select organization_id from api_keys where revoked_at is null
  union select organization_id from intake_secrets where revoked_at is null
  union ${distinct("invoices")}
  union ${distinct("invoice_lines")}`

const organizationsOf = (group: Group) =>
  group.sql
    .unsafe<{ organization_id: string }>(owners)
    .pipe(Effect.mapError(refusedBy(group)), Effect.map(Array.map((row) => row.organization_id)))

/** The SHA-256 of an organization's id as a header carries it; nothing for an id that no header can carry. */
export const hashOf = (organization: string): string | undefined =>
  // oxlint-disable-next-line no-control-regex -- these are what a header cannot have
  /^(?![ \t])[^\x00-\x08\x0a-\x1f\x7f\u0100-\uffff]+(?<![ \t])$/.test(organization)
    ? hash("sha256", Buffer.from(organization, "latin1"), "hex").toUpperCase()
    : undefined

/** Finds out which organizations each group has. Fails when one is in two groups and is not being moved. */
export const organizations = Effect.fnUntraced(function* (groups: ReadonlyArray<Group>, file: Groups) {
  const homes = new Map<string, string>()
  const inTwo: Array<string> = []
  for (const group of groups) {
    for (const id of yield* organizationsOf(group)) {
      if (Object.hasOwn(file.moving ?? {}, id)) continue
      const home = homes.get(id)
      if (home !== undefined && home !== group.name) inTwo.push(`${id} (${home}, ${group.name})`)
      homes.set(id, group.name)
    }
  }
  if (inTwo.length > 0) {
    const more = inTwo.length > named ? `, and ${inTwo.length - named} more` : ""
    const message = `Organizations that are in two groups: ${inTwo.slice(0, named).join(", ")}${more}`
    return yield* new MapsRefused({ message })
  }
  const moved = Object.entries(file.moving ?? {})
  return {
    /** The group that serves the reads of each organization. */
    homes: new Map([...homes, ...moved]),
    lines: [...homes, ...moved.map(([id]) => [id, moving] as const)]
      .flatMap(([id, backend]): ReadonlyArray<Line> => {
        const key = hashOf(id)
        return key === undefined ? [] : [{ key, backend }]
      })
      .toSorted(Order.mapInput(Order.String, ({ key }) => key))
  }
})

/**
 * The valid keys. Of an organization that is in several groups, those in its home. One of an organization that was made
 * since `organizations` is left to the next time.
 */
export const keys = (groups: ReadonlyArray<Group>, homes: ReadonlyMap<string, string>) =>
  Stream.fromIterable(groups).pipe(
    Stream.flatMap((group) =>
      group.sql<{ organization: string; key: string }>`
        select organization_id as organization, upper(encode(key_hash, 'hex')) as key from api_keys
        where revoked_at is null order by organization_id, id`.stream.pipe(
        Stream.mapError(refusedBy(group)),
        Stream.filter(({ organization }) => homes.get(organization) === group.name),
        Stream.map(({ key }): Line => ({ key, backend: group.name }))
      )
    )
  )
