/** Judges every statement of the service by its plan: to how many shards of Citus it goes. */
import { Data, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "../../../src/database/Database.ts"
import { messageOf } from "../../../src/database/SqlFailure.ts"
import type { Asked } from "./operations.ts"
import type { Recorded } from "./Recorder.ts"
import { tablesOf, unowned } from "./Shape.ts"

/** Returns the lines of the plan of a statement. */
type Explain = (statement: Recorded) => Effect.Effect<ReadonlyArray<string>, SqlError>

/** Ends a transaction that is not to commit. */
class RolledBack extends Data.TaggedError("RolledBack")<{ readonly plan: ReadonlyArray<string> }> {}

/** Plans by a database, which runs each statement as well, in a transaction that is rolled back. */
export const explainBy =
  (sql: Database): Explain =>
  ({ params, sql: text }) =>
    Effect.gen(function* () {
      const rows = yield* sql.unsafe<{ "QUERY PLAN": string }>(`explain (costs off) ${text}`, params).unprepared
      yield* sql.unsafe(text, params)
      return yield* new RolledBack({ plan: rows.map((row) => row["QUERY PLAN"]) })
    }).pipe(
      sql.withTransaction,
      Effect.catchTag("RolledBack", ({ plan }) => Effect.succeed(plan))
    )

interface Verdict {
  /** What is wrong; undefined if all is well. */
  readonly problem?: string
  /** Why it may touch several shards, where it does. */
  readonly exception?: string
}

interface Judgement extends Verdict {
  readonly operation: string
  readonly sql: string
}

const verdictOf = (sql: string, reason: string | undefined, plan: ReadonlyArray<string>): Verdict => {
  const tables = tablesOf(sql)
  if (tables.length === 0) return {}
  if (!plan.some((line) => line.includes("Citus"))) {
    return { problem: `does not go to a shard: is each of ${tables.join(", ")} distributed?` }
  }
  const tasks = plan.reduce((sum, line) => sum + Number(/^\s*Task Count: (\d+)/.exec(line)?.[1] ?? 0), 0)
  const subplans = plan.filter((line) => line.includes("Distributed Subplan")).length
  if (tasks === 1 && subplans === 0) return {}
  if (reason !== undefined && unowned(sql).length > 0) return { exception: reason }
  return { problem: `goes to ${tasks} shards, with ${subplans} subplans` }
}

/** Judges all statements. A plan that cannot be made is a problem, too. */
export const judgeAll = Effect.fnUntraced(function* (all: ReadonlyArray<Asked>, explain: Explain) {
  const judged: Array<Judgement> = []
  for (const { operation, statements } of all) {
    const { name, reason, statements: least } = operation
    if (statements.length < least) judged.push({ operation: name, sql: "", problem: "made too few statements" })
    for (const statement of statements) {
      const verdict = yield* Effect.match(explain(statement), {
        onFailure: (error): Verdict => ({ problem: `fails: ${messageOf(error)}` }),
        onSuccess: (plan) => verdictOf(statement.sql, reason, plan)
      })
      judged.push({ operation: name, sql: statement.sql, ...verdict })
    }
  }
  return judged
})
