/** Which group an organization and an API key belong to, as the groups' databases say. */
import { hash } from "node:crypto"
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Option, Stream } from "effect"
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

/** How many keys are in memory at once. */
const pageSize = 10_000

interface Key {
  readonly organization_id: string
  readonly id: string
  readonly hash: string
}

const keysAfter = ({ sql, ...group }: Group, last: Pick<Key, "organization_id" | "id">) =>
  sql<Key>`
    select organization_id, id, upper(encode(key_hash, 'hex')) as hash from api_keys
    where (organization_id, id) > (${last.organization_id}, ${last.id}) and revoked_at is null
    order by organization_id, id limit ${sql.literal(String(pageSize))}`.pipe(
    Effect.mapError(refusedBy({ sql, ...group }))
  )

const tooMany = (what: string, ids: ReadonlyArray<string>) =>
  `${what}: ${ids.slice(0, named).join(", ")}${ids.length > named ? `, and ${ids.length - named} more` : ""}`

/** The SHA-256 of an organization's id as a header carries it; nothing for an id that no header can carry. */
export const hashOf = (organization: string): string | undefined =>
  // oxlint-disable-next-line no-control-regex -- these are what a header cannot have
  /^(?![ \t])[^\x00-\x08\x0a-\x1f\x7f\u0100-\uffff]+(?<![ \t])$/.test(organization)
    ? hash("sha256", Buffer.from(organization, "latin1"), "hex").toUpperCase()
    : undefined

const byKey = (one: Line, other: Line) => (one.key < other.key ? -1 : one.key > other.key ? 1 : 0)

/** Finds out which organizations each group has. Fails when one is in two groups and is not being moved. */
export const organizations = Effect.fnUntraced(function* (groups: ReadonlyArray<Group>, file: Groups) {
  const homes = new Map<string, string>()
  const inTwo: Array<string> = []
  const found = yield* Effect.forEach(groups, (group) => Effect.map(organizationsOf(group), (ids) => ({ group, ids })))
  for (const { group, ids } of found) {
    for (const id of ids) {
      if (file.moving !== undefined && Object.hasOwn(file.moving, id)) continue
      const home = homes.get(id)
      if (home !== undefined && home !== group.name) inTwo.push(`${id} (${home}, ${group.name})`)
      homes.set(id, group.name)
    }
  }
  if (inTwo.length > 0)
    return yield* new MapsRefused({ message: tooMany("Organizations that are in two groups", inTwo) })
  const moved = Object.entries(file.moving ?? {})
  return {
    /** The group that serves the reads of each organization. */
    homes: new Map([...homes, ...moved]),
    lines: [
      ...Array.map([...homes], ([id, backend]) => ({ id, backend })),
      ...Array.map(moved, ([id]) => ({ id, backend: moving }))
    ]
      .flatMap(({ backend, id }): ReadonlyArray<Line> => {
        const key = hashOf(id)
        return key === undefined ? [] : [{ key, backend }]
      })
      .toSorted(byKey)
  }
})

/**
 * The valid keys, a page after the other. Of an organization that is in several groups, those in its home. One of an
 * organization that was made since `organizations` is left to the next time.
 */
export const keys = (groups: ReadonlyArray<Group>, homes: ReadonlyMap<string, string>) =>
  Stream.fromIterable(groups).pipe(
    Stream.flatMap((group) =>
      Stream.paginate({ organization_id: "", id: "" }, (last: Pick<Key, "organization_id" | "id">) =>
        Effect.map(keysAfter(group, last), (found) => {
          const lines = found.flatMap(({ hash: key, organization_id }): ReadonlyArray<Line> =>
            homes.get(organization_id) === group.name ? [{ key, backend: group.name }] : []
          )
          const next = found.length < pageSize ? Option.none() : Option.fromNullishOr(found.at(-1))
          return [[lines], next] as const
        })
      )
    )
  )
