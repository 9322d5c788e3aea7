/**
 * What it takes to add a shown field to a large table: how long, how much space, and how long a reader and a writer
 * waited for one statement meanwhile. First with `addField`, then with a rewrite of the table, as a generated column
 * needs it. Usage: `npm run bench:add-field [-- ROWS TABLE]`.
 */
import { Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { SqlClient } from "effect/sql"
import { connect, inOrder } from "../../src/database/Database.ts"
import { migrate } from "../../src/database/Migrations.ts"
import { addField } from "../../src/database/migrations/addField.ts"
import { machine, startPostgres } from "./support.ts"

const [rows = "1000000", table = "pets"] = process.argv.slice(2)
const postgres = await startPostgres(undefined, { max_wal_size: "4GB" })

const program = Effect.gen(function* () {
  const client = (maxConnections: number, settings: Readonly<Record<string, string>> = {}) =>
    connect({
      url: Redacted.make(postgres.url),
      applicationName: "practice-data-bench",
      maxConnections,
      statementTimeout: "10 minutes",
      settings
    })
  const sql = yield* client(2)
  const reads = yield* client(1, inOrder)
  const writes = yield* client(1)
  yield* migrate(sql)
  const [order = { by: "" }] = yield* sql<{ by: string }>`
    select attname as by from pg_attribute where attrelid = ${table}::regclass
      and attname in ('updated_at', 'modified_at') and not attisdropped`
  const clock = "timestamptz '2026-01-01' + n * interval '1 second'"
  yield* sql.unsafe(`insert into ${table} (organization_id, id, created_at, ${order.by})
    select 'org_' || n % 10, 'id_' || n, ${clock}, ${clock} from generate_series(1, ${Number(rows)}) n`)
  yield* sql.unsafe(`vacuum analyze ${table}`)

  const [old = { args: "", body: "" }] = yield* sql<{ args: string; body: string }>`
    select pg_get_function_arguments(oid) as args, substring(prosrc from 'RETURN (.*);') as body
    from pg_proc where proname = ${`${table}_record`}`
  const record = `create or replace function ${table}_record(${old.args}, lot_number text) returns text
    language sql immutable parallel safe
    return left(${old.body}, -1) || ',"lot_number":' || coalesce(to_json(lot_number)::text, 'null') || '}'`
  const added = addField({
    table,
    field: "lot_number",
    column: "lot_number",
    type: `text collate "C"`,
    record,
    indexes: { [`${table}_lot_number`]: `(organization_id, lot_number, ${order.by}, id)` }
  })
  const rewrite = Effect.gen(function* () {
    const [{ call } = { call: "" }] = yield* sql<{ call: string }>`
      select array_to_string(proargnames, ', ') as call from pg_proc where proname = ${`${table}_record`}`
    yield* sql.unsafe(`drop trigger zz_render on ${table}`)
    yield* sql.unsafe(`alter table ${table} drop column record,
      add column record text not null generated always as (${table}_record(${call})) stored`)
  })

  let longest = { reader: 0, writer: 0 }
  const looped = (who: keyof typeof longest, statement: (n: number) => Effect.Effect<unknown, unknown>) => {
    let n = 0
    const once = Effect.gen(function* () {
      const start = performance.now()
      yield* statement((n += 7919))
      longest[who] = Math.max(longest[who], performance.now() - start)
      yield* Effect.sleep("1 millis")
    })
    return Effect.forkChild(Effect.forever(once))
  }
  yield* looped("reader", (n) =>
    reads.unsafe(`select t.record from ${table} t where organization_id = $1 order by ${order.by}, id limit 100`, [
      `org_${n % 10}`
    ])
  )
  yield* looped("writer", (n) => {
    const id = 1 + (n % Number(rows))
    return writes.unsafe(`update ${table} set ${order.by} = now() where organization_id = $1 and id = $2`, [
      `org_${id % 10}`,
      `id_${id}`
    ])
  })

  const megabytes = Effect.map(
    sql<{ size: number }>`select (pg_total_relation_size(${table}::regclass) / 1048576)::int as size`,
    ([row]) => row?.size
  )
  const measured = Effect.fnUntraced(function* (what: string, work: Effect.Effect<unknown, unknown>) {
    const before = yield* megabytes
    longest = { reader: 0, writer: 0 }
    const start = performance.now()
    yield* work
    return {
      what,
      seconds: Math.round((performance.now() - start) / 100) / 10,
      "reader waited, ms": Math.round(longest.reader),
      "writer waited, ms": Math.round(longest.writer),
      "MB before": before,
      "MB after": yield* megabytes
    }
  })
  const measures = [
    yield* measured("nothing, for 10 seconds", Effect.sleep("10 seconds")),
    yield* measured("addField", added.online.pipe(Effect.provideService(SqlClient.SqlClient, sql))),
    yield* measured("a rewrite", rewrite)
  ]
  console.log(`${new Date().toISOString().slice(0, 10)}, ${machine()}; ${rows} rows of ${table}`)
  console.table(measures)
})

await Effect.runPromise(program.pipe(Effect.scoped, Effect.provide(Reactivity.layer)))
await postgres.stop()
