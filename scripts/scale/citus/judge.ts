/** Judges every statement of the service by its plan. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Asked } from "./operations.ts"
import { verdictOf } from "./Plan.ts"
import type { Recorded } from "./Recorder.ts"
import { tablesOf, unowned } from "./Shape.ts"

/** Returns the lines of the plan of a statement. */
export type Explain = (statement: Recorded) => Effect.Effect<ReadonlyArray<string>, SqlError>

export interface Judgement {
  readonly operation: string
  readonly sql: string
  /** What is wrong; undefined if all is well. */
  readonly problem: string | undefined
  /** Why it may touch several shards, where it does. */
  readonly exception: string | undefined
}

const messageOf = ({ reason }: SqlError) =>
  reason.cause instanceof Error ? reason.cause.message : `${reason._tag} ${reason.message}`

const judgeOne = ({ operation }: Asked, statement: Recorded, lines: ReadonlyArray<string>): Judgement => {
  const { sql } = statement
  const verdict = verdictOf(lines)
  const judgement = { operation: operation.name, sql, problem: undefined, exception: undefined }
  if (tablesOf(sql).length === 0) return judgement
  switch (verdict._tag) {
    case "Single":
      return judgement
    case "Local":
      return { ...judgement, problem: `does not go to a shard: is each of ${tablesOf(sql).join(", ")} distributed?` }
    case "Several":
      return operation.reason !== undefined && unowned(sql).length > 0
        ? { ...judgement, exception: operation.reason }
        : { ...judgement, problem: `goes to ${verdict.tasks} shards, with ${verdict.subplans} subplans` }
  }
}

/** Judges all statements. A plan that cannot be made is a problem, too. */
export const judgeAll = (all: ReadonlyArray<Asked>, explain: Explain): Effect.Effect<ReadonlyArray<Judgement>> =>
  Effect.map(
    Effect.forEach(all, (asked) => {
      const { operation, statements } = asked
      const missing: ReadonlyArray<Judgement> =
        statements.length >= operation.statements
          ? []
          : [{ operation: operation.name, sql: "", problem: "made too few statements", exception: undefined }]
      return Effect.map(
        Effect.forEach(statements, (statement) =>
          Effect.match(explain(statement), {
            onFailure: (error): Judgement => ({
              operation: operation.name,
              sql: statement.sql,
              problem: `fails: ${messageOf(error)}`,
              exception: undefined
            }),
            onSuccess: (lines) => judgeOne(asked, statement, lines)
          })
        ),
        (judged) => [...missing, ...judged]
      )
    }),
    (judged) => judged.flat()
  )
