/** Has the service's own code make its statements, without a database: each is written down, and what it returns is given. */
import { PgClient } from "@effect/sql-pg"
import { Duration, Effect, Redacted, Stream } from "effect"
import { Reactivity } from "effect/reactivity"
import type { Connection } from "effect/sql/SqlConnection"
import { type Database, guarded } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"

/** A statement as it goes to the database. */
export interface Recorded {
  readonly sql: string
  readonly params: ReadonlyArray<unknown>
}

/** The rows of a statement, where the code needs some to go on; none otherwise. */
export type Answers = (sql: string, params: ReadonlyArray<unknown>) => ReadonlyArray<object>

/** A database that nobody connects to, whose tables are distributed. */
export const database = Effect.gen(function* () {
  const client = yield* PgClient.make({ url: Redacted.make("postgres://nobody@127.0.0.1:1/none"), maxConnections: 1 })
  return yield* guarded(
    // A transaction makes no difference to the statements in it.
    Object.assign(client, { withTransaction: <A, E, R>(statements: Effect.Effect<A, E, R>) => statements }),
    { name: "nothing", connections: 64, isCancellable: false, probe: Effect.void },
    Distribution.distributed
  )
}).pipe(Effect.provide(Reactivity.layer))

// What only begins, ends or sets up a transaction reaches no table.
const isOfTransaction = (sql: string) =>
  /^\s*(begin|commit|rollback|savepoint|release|set |select set_config)/i.test(sql)

/** Runs an operation. The result: its statements, in their order. What becomes of the operation is its own business. */
export const record = <A, E, R>(sql: Database, operation: Effect.Effect<A, E, R>, answers: Answers) => {
  const recorded: Array<Recorded> = []
  const execute = (text: string, params: ReadonlyArray<unknown>) =>
    Effect.sync(() => {
      if (!isOfTransaction(text)) recorded.push({ sql: text, params })
      return answers(text, params)
    })
  const connection: Connection = {
    execute,
    executeRaw: execute,
    executeUnprepared: execute,
    executeValues: (text, params) => Effect.map(execute(text, params), (rows) => rows.map(Object.values)),
    executeValuesUnprepared: (text, params) => Effect.map(execute(text, params), (rows) => rows.map(Object.values)),
    executeStream: () => Stream.empty
  }
  return operation.pipe(
    Effect.provideService(sql.transactionService, [connection, 0]),
    Effect.timeoutOption(Duration.seconds(10)),
    Effect.exit,
    Effect.map((): ReadonlyArray<Recorded> => recorded)
  )
}
