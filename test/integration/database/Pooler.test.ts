/** A pooler that refuses to be asked for settings of sessions, as pgbouncer does. */
import { connect as connectTo, createServer } from "node:net"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { inOrder } from "../../../src/database/Database.ts"
import * as Listening from "../../support/Listening.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

const known = ["", "user", "database", "application_name", "client_encoding", "timezone"]
const protocol = 196_608

/** The URL of a pooler before a Postgres. */
const pooled = (url: URL) => {
  const server = createServer((client) => {
    const receive = (message: Buffer) => {
      if (message.readInt32BE(4) !== protocol) {
        client.write("N")
        return void client.once("data", receive)
      }
      const names = message
        .subarray(8)
        .toString()
        .split("\0")
        .filter((_, index) => index % 2 === 0)
      const refused = names.find((name) => !known.includes(name))
      if (refused !== undefined) {
        const fields = Buffer.from(`SFATAL\0C08P01\0Munsupported startup parameter: ${refused}\0\0`)
        const head = Buffer.from("E\0\0\0\0")
        head.writeInt32BE(4 + fields.length, 1)
        return void client.end(Buffer.concat([head, fields]))
      }
      const postgres = connectTo(Number(url.port), url.hostname).on("error", () => client.destroy())
      postgres.write(message)
      client.pipe(postgres)
      postgres.pipe(client)
    }
    client.once("data", receive).on("error", () => client.destroy())
  })
  return Effect.map(Listening.on(server), ({ port }) => Object.assign(new URL(url), { port: String(port) }).href)
}

layer(TestDatabase.layer, { excludeTestServices: true })("Through a pooler that refuses settings", (it) => {
  it.effect("statements work, without any that is prepared by name", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const sql = yield* clientOf(yield* pooled(new URL(url)), { settings: inOrder, statementTimeout: "5 seconds" })
      assert.isFalse(sql.route?.endpoint().asksSettings)
      for (const n of [1, 2]) assert.deepStrictEqual(yield* sql`select ${n}::int as n`, [{ n }])
      assert.deepStrictEqual(yield* sql`select name from pg_prepared_statements`, [])
    }).pipe(Effect.scoped)
  )
})
