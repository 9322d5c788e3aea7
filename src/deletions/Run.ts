/**
 * The run of a task: `run_deletion` locks its row, stores its facts, marks the rows that they name, and ends it, in one
 * transaction. If it has more than a thousand rows, those are marked in transactions of their own.
 */
import { Clock, DateTime, Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { Outcome } from "../api/DeletionTasks.ts"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import * as Marks from "./Marks.ts"
import { type Claim, conditions } from "./WorkerTasks.ts"

/**
 * The end of a run. `postponed`: the attempt does not count, for this reason. `failed`: it does, since rows could not be
 * marked; all others are. Undefined if another worker has the task.
 */
export type RunOutcome = Outcome | Readonly<{ postponed: string }> | Readonly<{ failed: string }> | undefined

/** Others hold rows of the task: its facts are stored, and the other rows marked. */
export const locked = { postponed: "Other transactions hold rows that it deletes" } as const

/** The task has more rows than an attempt can mark. */
const unfinished = { postponed: "It has more rows" } as const

/** The time in which an attempt begins to mark rows, in nanoseconds. */
const longestRun = 30_000_000_000n

/** The items that are remembered until their row comes: of an organization, and of all that have no row, together. */
export const mostRemembered = 100_000

const Result = Schema.Union([
  Schema.Struct({ outcome: Outcome }),
  Schema.Struct({ failed: Schema.String }),
  Schema.Struct({ left: Schema.Literals(["locked", "more"]) })
])
const results = rowsOf(Schema.Struct({ result: Schema.NullOr(Result) }))

/** The run of an attempt. `most`: the items that are remembered. */
export const make = (sql: Database, most = mostRemembered) => {
  const { at } = conditions(sql)

  return Effect.fnUntraced(function* (claim: Claim): Effect.fn.Return<RunOutcome, SqlError> {
    const attempt = (now: DateTime.Utc) =>
      sql`${claim.organization}, ${claim.taskId}::uuid, ${claim.token}::uuid, ${at(now)}`
    const bound = sql`${most}::integer`

    const ended = ([row]: ReadonlyArray<{ readonly result: typeof Result.Type | null }>): RunOutcome => {
      if (row === undefined || row.result === null) return undefined
      if ("outcome" in row.result) return row.result.outcome
      return "failed" in row.result ? row.result : locked
    }

    const ran = yield* results(sql`select run_deletion(${attempt(yield* DateTime.now)}, ${bound}) as result`)
    const isMore = ran.some(({ result }) => result !== null && "left" in result && result.left === "more")
    if (!isMore) return ended(ran)

    const until = (yield* Clock.monotonicTimeNanos) + longestRun
    const changes: Array<Marks.Change> = []
    for (const table of Marks.tables) {
      // Those that were deleted before stay as they are, so that each attempt has fewer.
      for (const some of yield* Marks.left(sql, { organization: claim.organization, ids: [claim.taskId] }, table)) {
        const change = yield* Marks.change(sql, claim.organization, some, attempt(yield* DateTime.now))
        if (change === undefined) return undefined
        if ((yield* Clock.monotonicTimeNanos) > until) return unfinished
        changes.push(change)
      }
    }
    const refused = (table: Marks.Table) => changes.flatMap((change) => (change.table === table ? change.refused : []))
    const [reason = null] = changes.flatMap((change) => change.reason ?? [])
    return ended(
      yield* results(sql`
        select end_deletion(
          ${attempt(yield* DateTime.now)}, ${Marks.countLocked(changes)}::integer, ${refused("invoices")}::text[],
          ${refused("invoice_lines")}::text[], ${reason}::text, ${bound}
        ) as result`)
    )
  })
}
