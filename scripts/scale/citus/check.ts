/**
 * Whether every statement of the service goes to one server of a distributed database: `npm run check:distributed`, with
 * the DATABASE_URL of its coordinator. Each is planned, and run in a transaction that is rolled back. Fails where a
 * statement goes to two shards or fails; those that may ask all servers are listed with the reason.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Data, Effect, Option } from "effect"
import { Reactivity } from "effect/reactivity"
import { readSettings } from "../../../src/operations/Settings.ts"
import { connect } from "../../../src/database/Database.ts"
import * as Distribution from "../../../src/database/Distribution.ts"
import { explainBy, judgeAll } from "./judge.ts"
import { recordAll } from "./operations.ts"
import * as Recorder from "./Recorder.ts"

class Refused extends Data.TaggedError("Refused")<{ readonly message: string }> {}

const check = Effect.gen(function* () {
  const { databaseUrl } = yield* readSettings
  if (Option.isNone(databaseUrl)) {
    return yield* new Refused({ message: "Set DATABASE_URL to the coordinator of a distributed database." })
  }
  const sql = yield* connect({
    url: databaseUrl.value,
    applicationName: "practice-data-check-distributed",
    maxConnections: 1,
    connectTimeout: "10 seconds",
    statementTimeout: "10 seconds"
  })
  if (!(yield* Distribution.hasDistributedTable(sql))) {
    const message = "The tables of DATABASE_URL are not distributed. Install Citus, and run: practice-data distribute"
    return yield* new Refused({ message })
  }
  const judged = yield* judgeAll(yield* recordAll(yield* Recorder.database), explainBy(sql))
  const problems = judged.filter(({ problem }) => problem !== undefined)
  for (const { operation, problem, sql: text } of problems) {
    yield* Console.log(`FAIL ${operation}: ${problem}\n     ${text.replaceAll(/\s+/g, " ").trim().slice(0, 300)}`)
  }
  const exceptions = judged.filter(({ exception }) => exception !== undefined)
  for (const [reason, some] of Map.groupBy(exceptions, ({ exception }) => exception)) {
    const names = new Set(some.map(({ operation }) => operation))
    yield* Console.log(`several servers: ${reason}\n     ${[...names].join("\n     ")}`)
  }
  const message = `${judged.length} statements: ${problems.length} wrong, ${exceptions.length} of several servers on purpose.`
  if (problems.length > 0) return yield* new Refused({ message })
  yield* Console.log(message)
})

check.pipe(
  Effect.scoped,
  Effect.provide(Reactivity.layer),
  Effect.catchTag(
    "SqlError",
    ({ reason }) => new Refused({ message: `The database does not answer: ${reason.message}` })
  ),
  Effect.tapError(({ message }) => Console.error(message)),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
