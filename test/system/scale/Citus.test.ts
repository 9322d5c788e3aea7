/**
 * A database that is distributed over the servers of a real Citus, beside one that is not.
 *
 * @module-tag long
 */
import { assert, describe, layer } from "@effect/vitest"
import { Context, Duration, Effect, Layer, Redacted, Scope } from "effect"
import { SqlClient } from "effect/sql"
import * as Callers from "./callers.ts"
import { explainBy, judgeAll } from "../../../scripts/scale/citus/judge.ts"
import { recordAll } from "../../../scripts/scale/citus/operations.ts"
import * as Recorder from "../../../scripts/scale/citus/Recorder.ts"
import type { Database } from "../../../src/database/Database.ts"
import { addField, addIndex } from "../../../src/database/migrations/addField.ts"
import { hashOf } from "../../../src/keys/KeyLookup.ts"
import { keys } from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import { runWith } from "../../support/cli.ts"
import { microchip } from "../../integration/database/microchip.ts"
import { freePort } from "../../support/LocalPostgres.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Citus from "./citus.ts"
import { type Request, send } from "./haproxy.ts"
import {
  ask,
  deliveries,
  delivery,
  invoices,
  jsonHeaders,
  organizations,
  readAll,
  same,
  search,
  withoutTimes
} from "./requests.ts"

const run = Effect.fnUntraced(function* (url: string, ...command: ReadonlyArray<string>) {
  const { code, stderr, stdout } = yield* runWith({ DATABASE_URL: url }, command)
  assert.strictEqual(code, 0, stderr)
  return stdout
})

const service = Effect.fnUntraced(function* (url: string, roles: string) {
  const port = yield* freePort
  const started = yield* Process.start({
    DATABASE_URL: url,
    ROLES: roles,
    PORT: String(port),
    DELETION_DELAY: "100 millis"
  })
  yield* started.address
  return { ...started, port }
})

/** Organizations that have a key and no records. Some are on each server. */
const others = Array.from({ length: 24 }, (_, index) => `org_other_${index}`)

const byKeyOf = (organization: string) => ({ ...search, headers: jsonHeaders(`Bearer key of ${organization}`) })

const addKeys = (sql: Database) =>
  Effect.forEach(others, (organization_id) => {
    const key_hash = hashOf(Redacted.make(`key of ${organization_id}`))
    return sql`insert into api_keys ${sql.insert({ organization_id, id: "key", name: "Test", prefix: "test", key_hash })}`
  })

/** A service with all of the data, and services with a login for each role on Citus. */
const make = Effect.gen(function* () {
  const whole = yield* TestDatabase
  const citus = yield* Citus.start
  yield* run(citus.url, "migrate")
  yield* run(citus.url, "demo")
  yield* addKeys(citus.sql)
  const said = yield* run(citus.url, "distribute")
  const logins = {
    api: yield* citus.login("practice_data_api"),
    intake: yield* citus.login("practice_data_intake"),
    worker: yield* citus.login("practice_data_worker")
  }
  const settings = yield* run(citus.url, "migrate")
  const [one, api, intake, worker] = yield* Effect.all(
    [
      service(whole.url, "data-api,intake,worker"),
      service(logins.api, "data-api"),
      service(logins.intake, "intake"),
      service(logins.worker, "worker")
    ],
    { concurrency: "unbounded" }
  )
  const scope = yield* Effect.scope
  /** Another worker, which outlives the test that starts it. */
  const replaceWorker = Scope.provide(service(logins.worker, "worker"), scope)
  return { whole, citus, said: said + settings, one, api, intake, worker, replaceWorker }
})

class Stand extends Context.Service<Stand, Effect.Success<typeof make>>()(
  "practice-data/test/system/scale/Citus/Stand"
) {
  static readonly layer = Layer.effect(Stand, make).pipe(Layer.provide(TestDatabase.layerDemo))
}

const outcomes = (sql: Database) => sql<{ organization_id: string; idempotency_key: string; state: string }>`
  select organization_id, idempotency_key, state, outcome from deletion_tasks order by organization_id, idempotency_key`

const settled = (...databases: ReadonlyArray<Database>) =>
  eventually(
    "all deletions are done",
    Effect.map(Effect.forEach(databases, outcomes), (found) => found.flat().every(({ state }) => state === "completed"))
  )

// One after the other: the last ones stop servers.
describe.runIf(Citus.isInstalled)(Citus.named("A database that is distributed by Citus"), () => {
  layer(Stand.layer, { excludeTestServices: true, timeout: Duration.minutes(3) })((it) => {
    it.effect("has what each server needs, after `distribute`, and a second time there is nothing to do", () =>
      Effect.gen(function* () {
        const { citus, said } = yield* Stand
        assert.include(said, "Distributed 19 tables by organization")
        assert.include(said, "Granted insert (state, attempts) on deletion_tasks to practice_data_intake")
        assert.match(said, /Logins that have the settings of sessions now: .*login_of_practice_data_api/)
        const again = yield* run(citus.url, "distribute")
        assert.match(again, /^All tables are distributed\n(?!Granted)/)
        const doctor = yield* run(citus.url, "doctor")
        assert.include(doctor, "Changes are not served (501)")
      })
    )

    it.effect("runs each statement of the service on one shard", () =>
      Effect.gen(function* () {
        const { citus } = yield* Stand
        const judged = yield* judgeAll(yield* recordAll(yield* Recorder.database), explainBy(citus.sql))
        assert.isAbove(judged.length, 300)
        assert.deepStrictEqual(
          judged.filter(({ problem }) => problem !== undefined),
          []
        )
      }).pipe(Effect.scoped)
    )

    it.effect("has the same responses, byte for byte, and runs deletions to the same end", () =>
      Effect.gen(function* () {
        const { api, citus, intake, one, whole } = yield* Stand
        const of = ({ path }: Request) => (path.startsWith("/api/v1") ? intake : api).port
        const compare = same((request) => Effect.all([send(one.port, request), send(of(request), request)]))
        // What a process serves depends on its roles.
        yield* readAll((request) => (request.path === "/" ? send(one.port, request) : compare(request)))
        const deliver = same((request) => Effect.all([send(one.port, request), send(intake.port, request)]))
        yield* Effect.forEach(deliveries, deliver, { discard: true })
        yield* settled(whole.sql, citus.sql)
        assert.deepStrictEqual(yield* outcomes(citus.sql), yield* outcomes(whole.sql))
        for (const organization of organizations) {
          const request = { ...invoices, headers: jsonHeaders(`Bearer ${keys[organization]}`) }
          const [before, after] = yield* Effect.all([send(one.port, request), send(api.port, request)])
          assert.strictEqual(withoutTimes(after.body), withoutTimes(before.body))
          assert.include(after.body, `"is_deleted":true`)
        }
      })
    )

    it.effect("refuses changes", () =>
      Effect.gen(function* () {
        const { api } = yield* Stand
        const refused = yield* send(api.port, ask("/charges/changes", {}))
        assert.strictEqual(refused.status, 501)
        assert.include(refused.body, "updated_at_since")
      })
    )

    it.effect("runs what a worker was killed over", () =>
      Effect.gen(function* () {
        const { citus, intake, replaceWorker, worker } = yield* Stand
        const keyed = Array.from({ length: 40 }, (_, index) => `killed_${index}`)
        yield* Effect.forEach(
          keyed,
          Effect.fnUntraced(function* (key, index) {
            const { status } = yield* send(
              intake.port,
              delivery(key, [others[index % others.length] ?? ""], "invoice_of_nobody")
            )
            assert.strictEqual(status, 202)
            if (index === 20) yield* worker.kill("SIGKILL")
          }),
          { concurrency: 4, discard: true }
        )
        yield* replaceWorker
        yield* settled(citus.sql)
        const ran = (yield* outcomes(citus.sql)).filter(({ idempotency_key }) => idempotency_key.startsWith("killed_"))
        assert.strictEqual(ran.length, keyed.length)
      })
    )

    it.effect("serves while a shard is moved to another server, and takes deliveries for it after that", () =>
      Effect.gen(function* () {
        const { api, citus, intake } = yield* Stand
        const callers = yield* Callers.start(api.port, [search], { callers: 4, keepAlive: true, pause: 5 })
        const from = yield* citus.serverOf("org_harbor")
        const to = citus.workers.find(({ port }) => port !== from.port)?.port ?? 0
        yield* citus.sql`
          select citus_move_shard_placement(${from.shard}, '127.0.0.1', ${from.port}::int, '127.0.0.1', ${to}::int)`
        assert.strictEqual((yield* citus.serverOf("org_harbor")).port, to)
        const report = yield* callers.stop
        assert.isAbove(report.length, 50)
        assert.isTrue(report.every(Callers.isGood))
        const { status } = yield* send(intake.port, delivery("moved", ["org_harbor"], "invoice_harbor_0009"))
        assert.strictEqual(status, 202)
        yield* settled(citus.sql)
      })
    )

    it.effect("takes a new index, and a new field in a table that is not distributed meanwhile", () =>
      Effect.gen(function* () {
        const { citus } = yield* Stand
        const { sql } = citus
        const migration = <A, E>(online: Effect.Effect<A, E, SqlClient.SqlClient>) =>
          Effect.provideService(online, SqlClient.SqlClient, sql)
        yield* migration(
          addIndex({ table: "pets", name: "pets_sex", columns: "(organization_id, sex, updated_at, id)" }).online
        )
        const shards = yield* sql<{ success: boolean; result: string }>`
          select success, result from run_command_on_shards('pets', $$
            select count(*) from pg_index where indrelid = '%s'::regclass and indexrelid::regclass::text like 'pets_sex%%'
          $$)`
        assert.isAbove(shards.length, 1)
        assert.deepStrictEqual(
          shards.filter(({ result }) => result !== "1"),
          []
        )

        const field = migration(addField(microchip).online)
        const refused = yield* Effect.flip(field)
        assert.match(refused.message, /select undistribute_table\('pets'\)/)
        yield* sql`select undistribute_table('pets')`
        // Of the shard that was moved, its server has the old copy for some seconds, which uses the old function.
        yield* sql.unsafe("call citus_cleanup_orphaned_resources()").unprepared
        yield* field
        yield* run(citus.url, "distribute")
        yield* sql`insert into pets (organization_id, id, microchip_number) values ('org_harbor', 'pet_new', '7')`
        yield* sql`update pets set microchip_number = '8' where organization_id = 'org_harbor' and id = 'pet_new'`
        const [pet] = yield* sql<{ record: string }>`
          select record from pets where organization_id = 'org_harbor' and id = 'pet_new'`
        assert.include(pet?.record ?? "", '"microchipNumber":"8"')
      })
    )

    it.effect(
      "answers for the organizations of the servers that are there: 503 for the others, until theirs is back",
      () =>
        Effect.gen(function* () {
          const { api, citus } = yield* Stand
          const [stopped, left] = citus.workers
          const placed = yield* Effect.forEach(others, (organization) =>
            Effect.map(citus.serverOf(organization), ({ port }) => ({ organization, port }))
          )
          const of = (port: number | undefined) => placed.find((each) => each.port === port)?.organization ?? ""
          const status = (organization: string) =>
            Effect.map(send(api.port, byKeyOf(organization)), (response) => response.status)
          const both = Effect.all([status(of(stopped?.port)), status(of(left?.port))])
          assert.deepStrictEqual(yield* both, [200, 200])
          yield* stopped?.stopImmediately ?? Effect.void
          assert.deepStrictEqual(yield* both, [503, 200])
          assert.deepStrictEqual(yield* both, [503, 200])
          yield* stopped?.start ?? Effect.void
          yield* eventually(
            "all organizations are answered for",
            Effect.map(both, ([first, second]) => first === 200 && second === 200)
          )
          yield* settled(citus.sql)
        })
    )
  })
})
