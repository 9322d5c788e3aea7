/**
 * A worker whose database did what it was asked, and whose connection broke before the response came.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { options } from "../../support/Service.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Gate from "../../support/Gate.ts"
import * as Ledger from "../../support/Ledger.ts"
import * as Program from "../../support/Program.ts"

/** The connection of the one worker to its database. */
class Connection extends Context.Service<Connection, TcpProxy.TcpProxy>()(
  "practice-data/test/system/deletions/LostResponses/Connection"
) {
  static readonly layer = Layer.effect(
    Connection,
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      yield* Ledger.open(sql, 10)
      yield* Gate.install(sql)
      const through = new URL(url)
      const proxy = yield* TcpProxy.make({ host: through.hostname, port: Number(through.port) })
      through.host = `${proxy.host}:${proxy.port}`
      yield* Program.start("worker", through.href)
      return proxy
    })
  ).pipe(Layer.provideMerge(TestDatabase.layer))
}

const statements = [
  { statement: "a claim", gate: "claim", committed: "running", invoice: 1 },
  { statement: "a deletion", gate: "deletion", committed: "completed", invoice: 2 }
] as const

layer(Connection.layer, options)("A worker that gets no response", (it) => {
  it.effect.each(statements)(
    "to $statement that was committed completes the task once, and uses up no attempt",
    ({ gate, committed, invoice }) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const connection = yield* Connection
        const { release } = yield* Gate.close(sql, gate)
        const task = yield* Ledger.schedule(sql, invoice)
        yield* Gate.areWaiting(sql, 1)
        yield* connection.cut("swallow")
        yield* release
        yield* Ledger.reaches(sql, task, committed)
        yield* connection.cut("reset")
        yield* connection.mend
        yield* Ledger.reaches(sql, task, "completed")
        // By the time that a later task is done, the worker would have run the first again.
        yield* Ledger.reaches(sql, yield* Ledger.schedule(sql, invoice + statements.length), "completed")
        assert.deepStrictEqual(yield* Ledger.entryOf(sql, task), Ledger.completedOnce(1))
        assert.strictEqual((yield* Ledger.balance(sql))?.rewritten, 0)
      })
  )
})
