/**
 * Two groups of organizations, each with a Postgres database and services of its own, behind haproxy: beside one service
 * that has the data of both.
 *
 * @module-tag long
 */
import { execFile } from "node:child_process"
import { hash } from "node:crypto"
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, describe, it } from "@effect/vitest"
import { Array, Clock, Context, Effect, Layer, Schema, Scope } from "effect"
import { update } from "../../../scripts/scale/maps/update.ts"
import * as Callers from "./callers.ts"
import { json, keys, type Organization } from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import * as Tools from "../../support/Tools.ts"
import { freePort } from "../../support/LocalPostgres.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { isInstalled, named, type Request, send, servers, start } from "./haproxy.ts"
import {
  ask,
  deliveries,
  delivery,
  invoices,
  jsonHeaders,
  organizations,
  readAll,
  reads,
  same,
  search,
  shown,
  withoutTimes
} from "./requests.ts"

const environment = { DATABASE_POOL_SIZE: "4", DELETION_DELAY: "100 millis", DRAIN: "3 seconds" }

const database = Effect.map(Layer.build(Layer.fresh(TestDatabase.layerDemo)), Context.get(TestDatabase))

/** Deletes all rows of an organization. */
const empty = Effect.fnUntraced(function* (sql: TestDatabase["Service"]["sql"], organization: string) {
  const tables = yield* sql<{ name: string }>`
    select table_name as name from information_schema.columns
    where table_schema = 'public' and column_name = 'organization_id'`
  yield* Effect.forEach(tables, ({ name }) => sql`delete from ${sql(name)} where organization_id = ${organization}`)
})

/** The commands of the page that copy the rows of org_7 from $A to $B. */
const documented =
  /^ {3}```sh\n(.*?)^ {3}```/ms.exec(
    readFileSync(new URL("../../../scripts/scale/README.md", import.meta.url), "utf8")
  )?.[1] ?? "exit 1"

const copyRows = (from: string, to: string, organization: string) =>
  Effect.callback<void, Tools.ToolFailed>((resume) => {
    const script = `set -e\n${documented.replaceAll("org_7", organization)}`
    const PATH = `${join(Tools.binaries ?? "", "bin")}:/usr/bin:/bin`
    execFile("bash", ["-c", script], { env: { A: from, B: to, PATH } }, (cause, _, stderr) =>
      resume(cause === null ? Effect.void : new Tools.ToolFailed({ message: stderr || cause.message }))
    )
  })

/** A database of one of the organizations alone. */
const half = Effect.fnUntraced(function* (other: Organization) {
  const { sql, url } = yield* database
  yield* empty(sql, `org_${other}`)
  return { sql, url }
})

/** A server that can be stopped and started again on its port. */
const server = Effect.fnUntraced(function* (url: string) {
  const port = yield* freePort
  const scope = yield* Effect.scope
  const run = Process.start({ ...environment, DATABASE_URL: url, PORT: String(port) }).pipe(
    Effect.tap((process) => process.address),
    Effect.provideService(Scope.Scope, scope)
  )
  let process = yield* run
  return {
    port,
    kill: Effect.suspend(() => process.kill("SIGKILL")),
    stop: Effect.suspend(() => Effect.andThen(process.kill("SIGTERM"), process.ended)),
    start: Effect.map(run, (next) => void (process = next))
  }
})

const stand = Effect.gen(function* () {
  const whole = yield* database
  const a = yield* half("harbor")
  const b = yield* half("oakridge")
  const [one, a1, b1, b2] = yield* Effect.all([server(whole.url), server(a.url), server(b.url), server(b.url)], {
    concurrency: "unbounded"
  })
  const haproxy = yield* start({
    [servers[0]]: a1.port,
    [servers[1]]: a1.port,
    [servers[2]]: b1.port,
    [servers[3]]: b2.port
  })
  const file = join(haproxy.folder, "groups.json")
  const write = (more: object = {}) =>
    writeFileSync(file, json({ groups: { group_a: { database: a.url }, group_b: { database: b.url } }, ...more }))
  write()
  const maps = update(file, { folder: haproxy.maps, sockets: [haproxy.socket] })
  return {
    a,
    b,
    whole,
    servers: { b1, b2 },
    haproxy,
    maps,
    write,
    /** What the one service, and the groups behind haproxy, say to a request. */
    both: (request: Request) => Effect.all([send(one.port, request), send(haproxy.port, request)])
  }
})

const Cursor = Schema.fromJsonString(Schema.Struct({ cursor: Schema.String }))

const ofHarbor = reads.filter(({ headers = [] }) => headers.some(([, value]) => value.includes(keys.harbor)))

const outcomes = (sql: TestDatabase["Service"]["sql"]) => sql<{
  organization_id: string
  idempotency_key: string
  state: string
  outcome: unknown
}>`select organization_id, idempotency_key, state, outcome from deletion_tasks
   where idempotency_key in ('one', 'two', 'three', 'four', 'five') order by organization_id, idempotency_key`

/** Waits until all deletions are done. */
const settled = (databases: ReadonlyArray<TestDatabase["Service"]["sql"]>) =>
  eventually(
    "all deletions are done",
    Effect.map(Effect.forEach(databases, outcomes), (found) =>
      found.every(Array.every(({ state }) => state === "completed"))
    )
  )

describe.runIf(isInstalled)(named("Groups of organizations behind haproxy"), () => {
  it.live("answer as one service that has the data of all", () =>
    Effect.gen(function* () {
      const { a, b, both, haproxy, maps, servers: running, whole, write } = yield* stand

      // Without maps, everything goes to the first group.
      const [known, unknown] = yield* both(search)
      assert.deepStrictEqual([known.status, unknown.status], [200, 401])
      assert.deepStrictEqual(yield* maps, { keys: 2, organizations: 2 })

      const compare = same(both)
      yield* readAll(compare)

      yield* Effect.forEach(deliveries, compare, { discard: true })
      yield* settled([whole.sql, a.sql, b.sql])
      const ran = { a: yield* outcomes(a.sql), b: yield* outcomes(b.sql) }
      assert.deepStrictEqual(
        [...ran.a, ...ran.b].toSorted((one, other) => (json(one) < json(other) ? -1 : 1)),
        (yield* outcomes(whole.sql)).toSorted((one, other) => (json(one) < json(other) ? -1 : 1))
      )
      assert.deepStrictEqual(
        ran.b.map((task) => `${task.organization_id} ${task.idempotency_key}`),
        ["org_harbor one", "org_harbor two"]
      )
      for (const organization of organizations) {
        const [one, groups] = yield* both({ ...invoices, headers: jsonHeaders(`Bearer ${keys[organization]}`) })
        assert.strictEqual(withoutTimes(groups.body), withoutTimes(one.body))
        assert.include(groups.body, `"is_deleted":true`)
      }

      // A key is valid once the maps have it, and gone at once when it is revoked.
      yield* b.sql`insert into api_keys ${b.sql.insert({
        organization_id: "org_harbor",
        id: "key_new",
        name: "New",
        prefix: "pda_live_",
        key_hash: hash("sha256", "a new key", "buffer")
      })}`
      const byNewKey = send(haproxy.port, { ...search, headers: jsonHeaders("Bearer a new key") })
      assert.strictEqual((yield* byNewKey).status, 401)
      assert.deepStrictEqual(yield* maps, { keys: 3, organizations: 2 })
      assert.strictEqual((yield* byNewKey).status, 200)
      yield* b.sql`update api_keys set revoked_at = now() where id = 'key_new'`
      assert.strictEqual((yield* byNewKey).status, 401)
      assert.deepStrictEqual(yield* maps, { keys: 2, organizations: 2 })

      // An organization in two groups is an error, and the maps stay as they are, unless it is being moved.
      const before = readFileSync(join(haproxy.maps, "keys.map"), "utf8")
      yield* a.sql`insert into organizations (organization_id, id, name) values ('org_harbor', 'org_harbor', 'Harbor')`
      const { message } = yield* Effect.flip(maps)
      assert.strictEqual(message, "Organizations that are in two groups: org_harbor (group_a, group_b)")
      assert.strictEqual(readFileSync(join(haproxy.maps, "keys.map"), "utf8"), before)
      write({ moving: { org_harbor: "group_b" } })
      yield* maps
      assert.strictEqual((yield* send(haproxy.port, search)).status, 200)
      const held = yield* send(haproxy.port, delivery("five", ["org_harbor"], "invoice_harbor_0005"))
      assert.deepStrictEqual([held.status, held.headers["retry-after"]], [503, "5"])
      yield* a.sql`delete from organizations where organization_id = 'org_harbor'`
      write()
      yield* maps
      assert.strictEqual((yield* send(haproxy.port, delivery("five", ["org_harbor"], "x"))).status, 202)

      // A restart and a death, with requests on connections that stay open and on new ones.
      const asked = [search, ask("/charges/search", { limit: 3 }, "oakridge")] as const
      const kept = yield* Callers.start(haproxy.port, asked, { callers: 6, keepAlive: true, pause: 20 })
      const fresh = yield* Callers.start(haproxy.port, asked, { callers: 2, keepAlive: false, pause: 20 })
      yield* running.b1.stop
      yield* running.b1.start
      yield* haproxy.untilUp("group_b", "b1")
      // One that is killed takes with it what was in its hands, and nothing that is asked later.
      const killed = yield* Clock.currentTimeMillis
      yield* running.b2.kill
      yield* Effect.sleep("1 second")
      const report = [...(yield* kept.stop), ...(yield* fresh.stop)]
      const failed = report.filter((sample) => !Callers.isGood(sample))
      assert.deepStrictEqual(
        failed.filter(({ at, took }) => at > killed + 100 || at + took < killed),
        []
      )
      assert.isAbove(report.length, 300)

      yield* settled([b.sql])
      const asShown = Effect.forEach(ofHarbor, (request) => Effect.map(send(haproxy.port, request), shown))
      const stayed = yield* asShown
      const changes = ask("/charges/changes", { limit: 1000 })
      const { cursor } = yield* Schema.decodeEffect(Cursor)((yield* send(haproxy.port, changes)).body)
      const follow = send(haproxy.port, { ...changes, body: json({ cursor }) })
      assert.strictEqual((yield* follow).status, 200)

      // A group without a service is 503, and the other one goes on.
      yield* running.b1.kill
      const [, gone] = yield* both(search)
      assert.deepStrictEqual([gone.status, gone.headers["retry-after"]], [503, "1"])
      yield* compare(ask("/charges/search", {}, "oakridge"))

      // An organization that is moved answers as before, and a reader of its changes begins again.
      if (Tools.binaries === undefined) return
      write({ moving: { org_harbor: "group_b" } })
      yield* maps
      yield* copyRows(b.url, a.url, "org_harbor")
      write({ moving: { org_harbor: "group_a" } })
      yield* maps
      assert.deepStrictEqual(yield* asShown, stayed)
      assert.strictEqual((yield* follow).status, 410)
      yield* empty(b.sql, "org_harbor")
      write()
      yield* maps
      // Sent again, a delivery is known.
      yield* Effect.forEach(deliveries.slice(0, 3), compare)
    }).pipe(Effect.provide(NodeServices.layer))
  )
})
