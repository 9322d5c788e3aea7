/**
 * The age of the last change of each resource, of all organizations and of one, and the organizations that stopped while
 * others go on. A change has a position; `change_times` says by when the changes below a position were made.
 */
import { Context, Duration, Effect, identity, Layer, Result, Schedule, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Constructor } from "effect/sql/Statement"
import type { PgClient } from "@effect/sql-pg"
import { resources } from "../api/records/index.ts"
import { rowsOf, unionAll } from "../database/Columns.ts"
import { RecordDatabase } from "../database/Database.ts"
import { isMigrated } from "../database/Migrations.ts"
import type { Failure, StatementRequest } from "../database/Store.ts"
import * as Series from "../observability/Series.ts"
import * as Loop from "../process/Loop.ts"
import * as Time from "../process/Time.ts"

/** The age of a change. */
export interface Age {
  readonly seconds: number
  /** True if the change is older than all times that are kept. */
  readonly isAtLeast: boolean
}

/** The ages of the last changes, by the name of their resource. A resource without any change has none. */
export type Ages = Readonly<Record<string, Age>>

export interface Report {
  /** The time of the reading, in milliseconds since 1970. */
  readonly at: number
  readonly resources: Ages
  /** The organizations that stopped, the longest silent first. */
  readonly stopped: ReadonlyArray<Age & { readonly organization: string }>
  /** Organizations that have records, and no row in `organizations`. */
  readonly unknown: ReadonlyArray<string>
}

/** The most organizations of a list. */
export const mostListed = 20

const day = 24 * 3600

/** The seconds without a change of any resource after which an organization may have stopped, and after which it is closed. */
const silence = { least: day, most: 30 * day } as const

/** An organization has stopped if it is silent for so many times as long as all organizations together. */
const timesOthers = 10

const kinds = ["resource", "stopped", "unknown"] as const

const Row = Schema.Struct({
  kind: Schema.Literals(kinds),
  name: Schema.String,
  seconds: Schema.Finite,
  isAtLeast: Schema.Boolean
})

/** The SQL of the age of a position, in two columns: by the first time kept above it. One above all is of the last minute. */
const ageOf = (position: string) => `
  greatest(0, coalesce(extract(epoch from now() - (
    select c.at from change_times c where c.position > ${position} order by c.position limit 1
  )), 0))::float8 as seconds,
  coalesce(${position} < (select min(c.position) from change_times c), true) as "isAtLeast"`

/** The SQL of the last position of each key in a table: one probe of its index for each of them. */
const lastOf = (table: string, key: ReadonlyArray<string>) => {
  const keyOf = (row: string) => key.map((column) => `${row}.${column}`).join(", ")
  const last = (condition: string) => `
    select ${keyOf("t")}, t.change_position from ${table} t ${condition}
    order by ${key.map((column) => `t.${column} desc`).join(", ")}, t.change_position desc limit 1`
  return `
  last_${table} (${key.join(", ")}, position) as (
    (${last("")})
    union all
    select next.* from last_${table} last cross join lateral (
      ${last(`where (${keyOf("t")}) < (${keyOf("last")})`)}
    ) next
  )`
}

const lastRecords = resources.map(({ table }) => lastOf(table, ["organization_id"]))
const lastRemovals = lastOf("removals", ["organization_id", "table_name"])

const reportQuery = `
  with recursive ${[...lastRecords, lastRemovals].join(",")},
  last as materialized (
    ${resources.map(({ table }) => `select '${table}' as table_name, organization_id, position, true as has_records from last_${table} union all`).join(" ")}
    select table_name, organization_id, position, false from last_removals
  ),
  owners as (
    select organization_id, max(position) as position, bool_or(has_records) as has_records from last group by organization_id
  ),
  ages as (select organization_id, ${ageOf("owners.position")} from owners where has_records),
  newest as (select ${ageOf("all_of.position")} from (select max(position) as position from last) all_of)
  select 'resource' as kind, table_name as name, ${ageOf("r.position")}
  from (select table_name, max(position) as position from last group by table_name) r
  union all
  (select 'stopped', organization_id, ages.seconds, ages."isAtLeast" from ages, newest
    where ages.seconds > greatest(${silence.least}, ${timesOthers} * newest.seconds) and ages.seconds < ${silence.most}
    order by ages.seconds desc, organization_id limit ${mostListed})
  union all
  (select 'unknown', organization_id, 0, false from ages a
    where not exists (select from organizations o where o.organization_id = a.organization_id)
    order by organization_id limit ${mostListed})`

const nameOf = new Map<string, string>(resources.map(({ name, table }) => [table, name]))

const agesOf = (rows: ReadonlyArray<typeof Row.Type>): Ages =>
  Object.fromEntries(rows.map(({ isAtLeast, name, seconds }) => [nameOf.get(name) ?? name, { seconds, isAtLeast }]))

/** The settings of a statement that probes indexes. A wait for a lock would count as work, which the pause depends on. */
const byIndex = { enable_seqscan: "off", enable_bitmapscan: "off", jit: "off", lock_timeout: "1s" } as const

/** Runs a statement with settings of its own; undefined if it takes longer than its milliseconds. */
export const bounded = <A, R>(
  sql: PgClient.PgClient,
  millis: number,
  settings: Readonly<Record<string, string>>,
  statement: Effect.Effect<A, SqlError, R>
) => {
  const all = { ...settings, statement_timeout: String(millis) }
  const set = sql`select set_config(key, value, true) from json_each_text(${JSON.stringify(all)}::json)`
  return sql
    .withTransaction(Effect.andThen(set, statement))
    .pipe(Effect.catchReason("SqlError", "StatementTimeoutError", () => Effect.undefined))
}

/** Reads the ages of the last changes; undefined without an answer in so many milliseconds. */
export const read = Effect.fnUntraced(function* (sql: PgClient.PgClient, millis: number) {
  const at = yield* Time.wall
  const rows = yield* bounded(sql, millis, byIndex, rowsOf(Row)(sql`${sql.literal(reportQuery)}`))
  if (rows === undefined) return undefined
  const of = (kind: (typeof kinds)[number]) => rows.filter((row) => row.kind === kind)
  const report: Report = {
    at,
    resources: agesOf(of("resource")),
    stopped: of("stopped").map(({ isAtLeast, name, seconds }) => ({ organization: name, seconds, isAtLeast })),
    unknown: of("unknown").map(({ name }) => name)
  }
  return report
})

/** The ages of the last changes of an organization: two probes for each resource. */
export const ofOrganization = (sql: Constructor, organization: string) => {
  const positions = resources.map(
    ({ table }) => sql`
      select ${table}::text as name, greatest(
        (select max(change_position) from ${sql.literal(table)} where organization_id = ${organization}),
        (select max(change_position) from removals where organization_id = ${organization} and table_name = ${table})
      ) as position`
  )
  const rows = sql`
    select 'resource' as kind, name, ${sql.literal(ageOf("last.position"))}
    from (${unionAll(positions)}) last where last.position is not null`
  return Effect.map(rowsOf(Row)(rows), agesOf)
}

/** The milliseconds that the ages of all organizations may take. */
const longest = 30_000

const request: StatementRequest<Failure> = {
  key: "the freshness",
  within: Duration.millis(longest + 5000),
  unavailable: identity
}

/** The pause after a reading, which takes at most 1 % of the time. Only a paused process needs longer than the longest one. */
export const pauseAfter = (took: Duration.Duration) =>
  Duration.clamp(Duration.times(took, 99), { minimum: Duration.minutes(1), maximum: Duration.hours(1) })

export class Freshness extends Context.Service<
  Freshness,
  {
    /** The last reading. Undefined before the first one, without an answer in time, and of a distributed database. */
    readonly last: Effect.Effect<Report | undefined>
  }
>()("practice-data/operations/Freshness") {
  /** Reads the ages from time to time, and sets their metric, until the scope closes. */
  static readonly layer = Layer.effect(
    Freshness,
    Effect.gen(function* () {
      const sql = yield* RecordDatabase
      const { gauge } = yield* Series.current
      const gauges = resources.map(
        ({ name }) => [name, gauge("practice_data_record_age_seconds", { resource: name })] as const
      )
      let last: Report | undefined
      const migrated = Effect.flatMap(isMigrated(sql), (isDone) => (isDone ? read(sql, longest) : Effect.undefined))
      const round = Effect.gen(function* () {
        const isSingle = sql.distribution.isDistributed() === false
        const reading = yield* Effect.result(isSingle ? sql.run(request, migrated) : Effect.undefined)
        last = Result.getOrUndefined(reading)
        for (const [name, series] of gauges) series.set(last?.resources[name]?.seconds)
        return Result.isFailure(reading) && reading.failure._tag === "Unreachable"
      })
      const watch = Effect.flatMap(Effect.timed(round), ([took, isDown]) =>
        Effect.sleep(isDown ? "5 seconds" : pauseAfter(took))
      )
      // At a start, another fiber may be asking the database for its distribution.
      const known = Effect.repeat(sql.distribution.refresh, {
        until: () => sql.distribution.isDistributed() !== undefined,
        schedule: Schedule.spaced("1 second")
      })
      yield* Effect.forkScoped(Loop.forever("The ages of the records", Effect.andThen(known, watch)))
      return Freshness.of({ last: Effect.sync(() => last) })
    })
  )

  /** The fake has read this. */
  static readonly layerMemory = (report?: Report) =>
    Layer.succeed(Freshness, Freshness.of({ last: Effect.succeed(report) }))
}
