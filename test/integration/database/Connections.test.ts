/** Connections of a pool, and sessions through a pooler that refuses settings. */
import { connect as connectTo, createServer } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect } from "effect"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { asBytes } from "../../../src/database/Columns.ts"
import { inOrder } from "../../../src/database/Database.ts"
import { retryOvertaken } from "../../../src/database/SqlFailure.ts"
import { make } from "../../../src/database/OrganizationReads.ts"
import { clientOf, newLogin, TestDatabase } from "../../support/TestDatabase.ts"
import { live } from "../../support/tries.ts"
import * as Listening from "../../support/Listening.ts"

const request = { key: "a", within: Duration.seconds(8), unavailable: ({ reason }: { reason: string }) => reason }

const known = ["", "user", "database", "application_name", "client_encoding", "timezone"]
const protocol = 196_608

/** The error of a pooler, as bytes. */
const errorOf = (message: string) => {
  const fields = Buffer.from(`SFATAL\0C08P01\0M${message}\0\0`)
  const head = Buffer.from("E\0\0\0\0")
  head.writeInt32BE(4 + fields.length, 1)
  return Buffer.concat([head, fields])
}

/** The URL of a pooler before a Postgres. */
const pooled = (url: URL) => {
  const server = createServer((client) => {
    const receive = (message: Buffer) => {
      if (message.readInt32BE(4) !== protocol) {
        client.write("N")
        return void client.once("data", receive)
      }
      const words = message.subarray(8).toString().split("\0")
      const refused = words.find((name, index) => index % 2 === 0 && !known.includes(name))
      if (refused !== undefined) return void client.end(errorOf(`unsupported startup parameter: ${refused}`))
      const postgres = connectTo(Number(url.port), url.hostname).on("error", () => client.destroy())
      postgres.write(message)
      client.pipe(postgres)
      postgres.pipe(client)
    }
    client.once("data", receive).on("error", () => client.destroy())
  })
  return Effect.map(Listening.on(server), ({ port }) => Object.assign(new URL(url), { port: String(port) }).href)
}

layer(TestDatabase.layer, live)("reads", (it) => {
  it.effect("leave records that were read as they are, whatever their connection reads next", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf((yield* TestDatabase).url)
      // Each answer is many reads, and ends in the middle of one.
      const read = (letter: string) =>
        sql.unsafe<{ record: Uint8Array }>(
          `select ${asBytes("t.record")} from (select repeat('${letter}', 999) as record from generate_series(1, 200)) t`
        )
      const first = yield* read("a")
      yield* read("b")
      yield* read("c")
      assert.lengthOf(first, 200)
      for (const { record } of first) assert.strictEqual(Buffer.from(record).toString(), "a".repeat(999))
    })
  )

  it.effect("whose connection the server closes are tried once more on another", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`create sequence tries`
      const read = sql`select case nextval('tries') when 1 then pg_terminate_backend(pg_backend_pid()) end`
      assert.lengthOf(yield* retryOvertaken(read), 1)
    })
  )

  it.effect("and writes leave a server that became read-only: the pool closes its connections", () =>
    Effect.gen(function* () {
      const { sql: admin } = yield* TestDatabase
      const { name, url } = yield* newLogin("writer")
      // For the sessions that begin by then.
      yield* admin.unsafe(`alter role ${name} set default_transaction_read_only = on`)
      const sql = yield* clientOf(url)
      const write = sql.run(request, sql`delete from pets where organization_id = 'none'`)
      assert.strictEqual(yield* Effect.flip(write), "UnknownError 25006")
      yield* admin.unsafe(`alter role ${name} reset default_transaction_read_only`)
      yield* write
    })
  )

  it.effect("through a pooler that refuses settings work, unprepared, and costly ones are not compiled", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const given = yield* pooled(new URL(`${url}?options=-c%20geqo%3Doff&pgbouncer=true`))
      const sql = yield* clientOf(given, { settings: inOrder, statementTimeout: "5 seconds" })
      assert.deepInclude(yield* sql`show timezone`, { TimeZone: "UTC" })
      for (const n of [1, 2]) assert.deepStrictEqual(yield* sql`select ${n}::int as n`, [{ n }])
      assert.deepStrictEqual(yield* sql`select name from pg_prepared_statements`, [])
      const text = "select current_setting('jit') as jit, $1"
      const read = { text, values: [], columns: ["jit"], limit: 1, isPlannedOnce: true, isCostly: true } as const
      yield* sql`set jit = on`
      const rows = yield* Effect.provideService(make(sql)(read), CurrentOrganization, { id: "org_a" })
      assert.deepInclude(rows[0], { jit: "off" })
      assert.deepStrictEqual(yield* sql`show jit`, [{ jit: "on" }])
    })
  )
})
