/** Judges every statement of the service by its plan: to how many shards of Citus it goes. */
import { Data, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Database } from "../../../src/database/Database.ts"
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

interface Judgement {
  readonly operation: string
  readonly sql: string
  /** What is wrong; undefined if all is well. */
  readonly problem?: string
  /** Why it may touch several shards, where it does. */
  readonly exception?: string
}

const judgeOne = ({ operation }: Asked, { sql }: Recorded, lines: ReadonlyArray<string>): Judgement => {
  const judgement = { operation: operation.name, sql }
  const tables = tablesOf(sql)
  if (tables.length === 0) return judgement
  if (!lines.some((line) => line.includes("Citus"))) {
    return { ...judgement, problem: `does not go to a shard: is each of ${tables.join(", ")} distributed?` }
  }
  const tasks = lines.reduce((sum, line) => sum + Number(/^\s*Task Count: (\d+)/.exec(line)?.[1] ?? 0), 0)
  const subplans = lines.filter((line) => line.includes("Distributed Subplan")).length
  if (tasks === 1 && subplans === 0) return judgement
  return operation.reason !== undefined && unowned(sql).length > 0
    ? { ...judgement, exception: operation.reason }
    : { ...judgement, problem: `goes to ${tasks} shards, with ${subplans} subplans` }
}

/** Judges all statements. A plan that cannot be made is a problem, too. */
export const judgeAll = (all: ReadonlyArray<Asked>, explain: Explain): Effect.Effect<ReadonlyArray<Judgement>> =>
  Effect.map(
    Effect.forEach(all, (asked) => {
      const { name: operation, statements: least } = asked.operation
      const judge = (statement: Recorded) =>
        Effect.match(explain(statement), {
          onFailure: ({ reason: { cause, message } }): Judgement => {
            const problem = `fails: ${cause instanceof Error ? cause.message : message}`
            return { operation, sql: statement.sql, problem }
          },
          onSuccess: (lines) => judgeOne(asked, statement, lines)
        })
      return Effect.map(Effect.forEach(asked.statements, judge), (judged) =>
        asked.statements.length >= least
          ? judged
          : [{ operation, sql: "", problem: "made too few statements" }, ...judged]
      )
    }),
    (judged) => judged.flat()
  )
