/**
 * Copies beside writers, deletions and resets, by commands that are killed 4 times each, one into a database that is
 * restarted. Whoever queries them at any time finds whole transactions of the service's database. In the end they are the
 * same as its tables.
 *
 * @module-tag long
 */
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Deferred, Effect, Fiber, Random } from "effect"
import { resources } from "../../../contract/Contract.ts"
import { live } from "../../../support/tries.ts"
import { runWith, start } from "../../../support/cli.ts"
import { eventually } from "../../../support/eventually.ts"
import * as Process from "../../../support/Process.ts"
import * as LocalPostgres from "../../../support/LocalPostgres.ts"
import { settled } from "../../../support/changes.ts"
import { clientOf, TestDatabase } from "../../../support/TestDatabase.ts"
import * as Readers from "../../../integration/cli/sync/readers.ts"

const kills = 4
const owner = "org_oakridge"

const writer = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  let round = 0
  const transaction = Effect.gen(function* () {
    round += 1
    const tail = `%${round % 10}`
    yield* sql`insert into consumption_logs (organization_id, id, qty_consumed, product_name)
      select ${owner}, 'new_' || ${round}::int || '_' || n, n / 8.0, 'é "' || n from generate_series(1, 60) n`
    yield* sql`update clinics set name = ${`round ${round}`} where organization_id = ${owner}`
    yield* sql`update charges set status = ${`round ${round}`}, net_paid = random()::numeric(12, 6)
      where organization_id = ${owner} and id like ${tail}`
    yield* sql`delete from consumption_logs where organization_id = ${owner} and id like ${`new_%${tail}`}`
    yield* sql`delete from invoice_lines where organization_id = ${owner} and id like ${`many_${round % 40}_%`}`
    yield* sql`insert into invoice_lines (organization_id, id, quantity)
      select ${owner}, 'many_' || ${(round + 20) % 40}::int || '_' || n, n from generate_series(1, 100) n
      on conflict (organization_id, id) do update set quantity = ${round}, updated_at = now()`
    yield* Effect.sleep(round % 5 === 0 ? "150 millis" : "10 millis")
  })
  yield* sql`insert into invoice_lines (organization_id, id, quantity)
    select ${owner}, 'many_' || n % 40 || '_' || n / 40, n from generate_series(1, 4000) n`
  const write = Effect.gen(function* () {
    yield* sql.withTransaction(transaction)
    // The resource is reset.
    if (round % 60 === 0) {
      yield* sql`truncate products`
      yield* sql`insert into products (organization_id, id) select ${owner}, n from generate_series(1, 1500) n`
    }
    yield* Effect.sleep("40 millis")
  })
  return { write }
})

type Found = ReadonlyArray<Readonly<Record<string, unknown>>>

/** Finds nothing while a copy cannot be queried. */
const looking = <E>(query: Effect.Effect<Found, E>) => Effect.orElseSucceed(query, (): Found => [])

/** The transaction that a copy is at: by the names of its clinics, and by its logs, with the function that finds a text. */
const atRound = (find: string) => `
  select (select min(name) || max(name) from clinics) as clinics, number, count(*) as logs
  from (select substr(id, 5, ${find}(substr(id, 5), '_') - 1) as number from consumption_logs where id like 'new!_%' escape '!') new
  group by number order by cast(number as integer) desc limit 1`

/** The torn states of a copy. A transaction adds 60 logs, takes away 6 of them, and names all clinics after itself. */
const tornIn = (rows: Found) =>
  rows.filter(({ clinics, logs, number }) => Number(logs) !== 54 || clinics !== `round ${String(number)}`.repeat(2))

/** Kills a command again and again, at some point after it has opened its target. */
const killAgainAndAgain = Effect.fnUntraced(function* (environment: Process.Environment, args: ReadonlyArray<string>) {
  let killed = 0
  while (killed < kills) {
    const after = yield* Random.nextIntBetween(0, 600)
    // Early in a round, and after the copy was in step.
    const seen = killed % 2 === 0 ? "" : '"in_step"'
    const { code, output, signal } = yield* Effect.scoped(
      Effect.gen(function* () {
        const command = yield* start(environment, args)
        const opened = eventually("its output", () => command.stdout() !== "" && command.stdout().includes(seen))
        yield* Effect.raceFirst(Effect.andThen(opened, Effect.sleep(after)), command.ended)
        yield* command.kill("SIGKILL")
        return { ...(yield* command.ended), output: command.output() }
      })
    )
    // The database was down when it started.
    if (code !== 75) assert.strictEqual(signal, "SIGKILL", output)
    if (signal !== null) killed += 1
  }
})

layer(TestDatabase.layerDemo, live)("a copy is the same in the end", (it) => {
  it.effect("however often the command and the target's database were killed", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const service = yield* Process.start({ DATABASE_URL: url, DATABASE_POOL_SIZE: "8", ROLES: "data-api" })
      // A process that is killed loses nothing that the system was given to write.
      const warehouse = yield* LocalPostgres.make({ settings: { fsync: "off" } })
      const copied = yield* clientOf(warehouse.url)
      const folder = yield* Process.temporaryFolder
      const environment = { PRACTICE_DATA_URL: yield* service.address, PRACTICE_DATA_API_KEY: "pda_demo_oakridge" }
      const file = join(folder, "copy.db")
      const targets = [
        {
          target: warehouse.url,
          look: looking(copied.unsafe<Found[number]>(atRound("strpos"))),
          read: (name: string) => Readers.inPostgres(copied, "public", name)
        },
        {
          target: `sqlite:${file}`,
          look: looking(Effect.try(() => Readers.query(file, atRound("instr")))),
          read: (name: string) => Effect.sync(() => Readers.inSqlite(file, name))
        }
      ]

      const over = yield* Deferred.make<void>()
      const restart = Effect.gen(function* () {
        yield* Effect.timeoutOption(Deferred.await(over), "6 seconds")
        if (Deferred.isDoneUnsafe(over)) return
        yield* warehouse.stopImmediately
        yield* Effect.sleep("500 millis")
        yield* warehouse.start
      })
      const until = { until: () => Deferred.isDoneUnsafe(over) }
      const [seen, torn] = [new Set<string>(), new Array<unknown>()]
      const query = Effect.gen(function* () {
        for (const { look, target } of targets) {
          const rows = yield* look
          for (const { number } of rows) seen.add(`${target} ${String(number)}`)
          torn.push(...tornIn(rows).map((row) => ({ target, ...row })))
          yield* Effect.sleep("20 millis")
        }
      })
      const around = yield* Effect.all(
        [Effect.repeat((yield* writer).write, until), Effect.repeat(restart, until), Effect.repeat(query, until)],
        { concurrency: "unbounded" }
      ).pipe(Effect.forkScoped)
      const killing = targets.map(({ target }) => killAgainAndAgain(environment, ["sync", target, "--watch", "1"]))
      yield* Effect.all(killing, { concurrency: "unbounded" })
      yield* Deferred.succeed(over, undefined)
      yield* Fiber.join(around)
      assert.deepStrictEqual(torn, [])
      assert.isAbove(seen.size, 1)

      yield* settled(sql)
      for (const { read, target } of targets) {
        const ended = yield* runWith(environment, ["sync", target])
        assert.strictEqual(ended.code, 0, ended.stderr)
        for (const { name } of resources) {
          const rows = yield* sql<{ id: string; record: string }>`
            select id, record from ${sql(Readers.tableOf(name))} where organization_id = ${owner}`
          const expected = Object.fromEntries(rows.map(({ id, record }) => [id, record]))
          assert.deepStrictEqual(Object.fromEntries(yield* read(name)), expected, `${name} in ${target}`)
        }
      }
    })
  )
})
