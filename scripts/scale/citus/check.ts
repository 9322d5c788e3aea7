/**
 * Whether every statement of the service goes to one server of a distributed database: `npm run check:distributed`, with
 * the DATABASE_URL of its coordinator. Each is planned, and run in a transaction that is rolled back. Fails where a
 * statement goes to two shards or fails; those that may ask all servers are listed with the reason.
 */
import { Console, Effect, Option } from "effect"
import { Reactivity } from "effect/reactivity"
import { readSettings } from "../../../src/operations/Settings.ts"
import { connect, type Database } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import { explainBy, judgeAll } from "./judge.ts"
import { recordAll } from "./operations.ts"
import * as Recorder from "./Recorder.ts"

const refuse = (message: string) =>
  Effect.andThen(
    Console.error(message),
    Effect.sync(() => (process.exitCode = 1))
  )

const oneLine = (sql: string) => sql.replaceAll(/\s+/g, " ").trim().slice(0, 300)

const judgeDatabase = Effect.fnUntraced(function* (sql: Database) {
  const judged = yield* judgeAll(yield* recordAll(yield* Recorder.database), explainBy(sql))
  const problems = judged.filter(({ problem }) => problem !== undefined)
  const exceptions = Map.groupBy(
    judged.filter(({ exception }) => exception !== undefined),
    ({ exception }) => exception ?? ""
  )
  for (const { operation, problem, sql: text } of problems) {
    yield* Console.log(`FAIL ${operation}: ${problem}\n     ${oneLine(text)}`)
  }
  for (const [reason, some] of exceptions) {
    const names = [...new Set(some.map(({ operation }) => operation))]
    yield* Console.log(`several servers: ${reason}\n     ${names.join("\n     ")}`)
  }
  const counted = `${judged.length} statements: ${problems.length} wrong, ${[...exceptions.values()].flat().length} of several servers on purpose.`
  yield* problems.length > 0 ? refuse(counted) : Console.log(counted)
})

const check = Effect.gen(function* () {
  const { databaseUrl } = yield* readSettings
  if (Option.isNone(databaseUrl)) {
    yield* refuse("Set DATABASE_URL to the coordinator of a distributed database.")
    return
  }
  const sql = yield* connect({
    url: databaseUrl.value,
    applicationName: "practice-data-check-distributed",
    maxConnections: 1,
    connectTimeout: "10 seconds",
    statementTimeout: "10 seconds"
  })
  yield* (yield* Distribution.hasDistributedTable(sql))
    ? judgeDatabase(sql)
    : refuse("The tables of DATABASE_URL are not distributed. Install Citus, and run: practice-data distribute")
})

await Effect.runPromise(
  check.pipe(
    Effect.scoped,
    Effect.provide(Reactivity.layer),
    Effect.catchTags({
      SqlError: ({ reason }) => refuse(`The database does not answer: ${reason.message}`),
      ConfigError: ({ message }) => refuse(message)
    })
  )
)
