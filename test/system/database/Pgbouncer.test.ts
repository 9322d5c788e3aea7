/**
 * A pgbouncer in front of Postgres, where one is installed: it refuses to be asked for settings, or swallows them, and
 * gives each transaction another session.
 *
 * @module-tag long
 */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Array, Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect, inOrder, sessionSettings } from "../../../src/database/Database.ts"
import * as SessionSettings from "../../../src/database/SessionSettings.ts"
import { eventually } from "../../support/eventually.ts"
import * as LocalPostgres from "../../support/LocalPostgres.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const isInstalled = spawnSync("pgbouncer", ["--version"]).status === 0

const swallowed = "timezone,statement_timeout,enable_bitmapscan,enable_seqscan"

/** The port of a pgbouncer that pools by transaction, which is gone when the scope closes. */
const pooler = Effect.fnUntraced(function* (url: URL, ignored: string, login: string) {
  const folder = yield* LocalPostgres.enterableFolder
  const port = yield* LocalPostgres.freePort
  const put = (name: string, text: string) => {
    writeFileSync(join(folder, name), text)
    chmodSync(join(folder, name), 0o644)
    return join(folder, name)
  }
  const users = put("users", `"${login}" "secret"\n"admin" "secret"\n`)
  const file = put(
    "pgbouncer.ini",
    `[databases]
* = host=${url.hostname} port=${url.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = plain
auth_file = ${users}
admin_users = admin
pool_mode = transaction
default_pool_size = 4
${ignored === "" ? "" : `ignore_startup_parameters = ${ignored}`}
`
  )
  const user = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
  const child = yield* Effect.acquireRelease(
    Effect.sync(() => spawn("pgbouncer", ["--quiet", file], { ...user, stdio: "ignore" })),
    (running) => Effect.sync(() => running.kill("SIGKILL"))
  )
  assert.isUndefined(child.exitCode ?? undefined)
  return port
})

const cases = [
  ["refuses to be asked for settings", "", ""],
  ["swallows settings", swallowed, "?pgbouncer=true"]
] as const

layer(TestDatabase.layer, { excludeTestServices: true })("Through a pgbouncer that", (it) => {
  const can = isInstalled ? it.effect : it.effect.skip
  for (const [manner, ignored, parameters] of cases)
    can(`${manner} statements work, and their sessions have the settings of the login`, () =>
      Effect.gen(function* () {
        const { sql, url } = yield* TestDatabase
        const login = `pooled_${process.pid}_${ignored.length}`
        yield* Effect.acquireRelease(
          sql.unsafe(`create role ${login} login password 'secret' in role practice_data_api`),
          () => Effect.orDie(sql.unsafe(`drop role ${login}`))
        )
        const port = yield* pooler(new URL(url), ignored, login)
        const own = Object.assign(new URL(url), { username: login, password: "secret", port: String(port) })
        const pool = {
          url: Redacted.make(`${own.href}${parameters}`),
          applicationName: "practice-data-test",
          maxConnections: 6,
          statementTimeout: "5 seconds",
          settings: inOrder
        } as const
        const isThere = Effect.scoped(Effect.flatMap(connect(pool), (one) => Effect.isSuccess(one`select 1`)))
        yield* eventually("pgbouncer answers", isThere)
        const through = yield* connect(pool)
        assert.strictEqual(through.route?.endpoint().asksSettings, ignored !== "")
        const before = yield* SessionSettings.lost(through, sessionSettings(pool))
        assert.include(SessionSettings.describe(before), "statement_timeout is 0 instead of 5000")

        const statements = Array.makeBy(60, (index) =>
          index % 2 === 0
            ? through`select count(*) from pets where organization_id = ${String(index)}`
            : through.withTransaction(Effect.andThen(through`select 1 as one`, through`select ${index}::int as it`))
        )
        yield* Effect.all(statements, { concurrency: 6 })

        yield* SessionSettings.giveToLogins(sql)
        const admin = `postgres://admin:secret@127.0.0.1:${port}/pgbouncer`
        yield* Effect.sync(() => execFileSync("psql", ["-Xqc", "RECONNECT", admin], { stdio: "ignore" }))
        const isInForce = Effect.map(SessionSettings.lost(through, sessionSettings(pool)), (lost) => lost.length === 0)
        yield* eventually("the settings are in force", isInForce)
      }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
    )
})
