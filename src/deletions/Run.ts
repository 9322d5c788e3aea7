/**
 * The run of a task: in one transaction, which locks its row, stores its facts, marks the rows that they name, and ends it. If
 * it has more than a thousand rows, those are marked in transactions of their own.
 */
import { Array, Clock, DateTime, Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { Outcome } from "../api/DeletionTasks.ts"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import { inTransaction } from "../database/SqlFailure.ts"
import * as Marks from "./Marks.ts"
import { type Claim, conditions, grace } from "./WorkerTasks.ts"

/**
 * The end of a run. `postponed`: the attempt does not count, for this reason. `failed`: it does, since rows could not be
 * marked; all others are. Undefined if another worker has the task.
 */
export type RunOutcome = Outcome | Readonly<{ postponed: string }> | Readonly<{ failed: string }> | undefined

/** Others hold rows of the task: its facts are stored, and the other rows marked. */
export const locked = { postponed: "Other transactions hold rows that it deletes" } as const

/** The task has more rows than an attempt can mark. */
const unfinished = { postponed: "It has more rows" } as const
const many = "many"

/** The time in which an attempt begins to mark rows, in nanoseconds. */
const longestRun = 30_000_000_000n

/** The items that are remembered until their row comes: of an organization, and of all that have no row, together. */
export const mostRemembered = 100_000

/** Changes rows in the current transaction. */
type Change = Parameters<Parameters<typeof Marks.changing>[2]>[0]

const outcomes = rowsOf(Schema.Struct({ outcome: Outcome }))

/** The SQL of the numbers of items by verdict; of those that failed, only if there are any. */
const counts = (kind: string, verdicts: object) => {
  const numbers = Object.keys(verdicts).map((verdict) => {
    const number = `count(*) filter (where kind = '${kind}' and verdict = '${verdict}')`
    return `'${verdict}', ${verdict === "failed" ? `nullif(${number}, 0)` : number}`
  })
  return `jsonb_strip_nulls(jsonb_build_object(${numbers.join(", ")}))`
}

/** The run of an attempt. `bound`: the most items that are remembered. */
export const make = (sql: Database, bound = mostRemembered) => {
  const { at, isFact, isHeld, isTask } = conditions(sql)

  /** Stores the items of a task as facts, each with its verdict. In a later attempt, what was refused is tried again. */
  const remember = Effect.fnUntraced(function* (claim: Claim) {
    const { organization, taskId } = claim
    const now = yield* DateTime.now
    const noted = yield* sql`
      with facts as (insert into deletions (
        organization_id, task_id, kind, item, id, clinic_id, client_id, invoice_id, deleted_at, verdict, is_known
      )
      with task as materialized (select payload from deletion_tasks where ${isTask(claim)}),
      items as (
        select 'invoice' as kind, n.item, n.id, n.clinic_id, n.client_id, null as invoice_id
        from task cross join lateral rows from (
          jsonb_to_recordset(payload -> 'invoices') as (invoice_id text, clinic_id text, client_id text)
        ) with ordinality as n (id, clinic_id, client_id, item)
        union all
        select 'line', n.item, n.id, n.clinic_id, null, n.invoice_id
        from task cross join lateral rows from (
          jsonb_to_recordset(payload -> 'invoice_lines') as (invoice_line_id text, invoice_id text, clinic_id text)
        ) with ordinality as n (id, invoice_id, clinic_id, item)
      )
      select ${organization}, ${taskId}::uuid, kind, item, id, clinic_id, client_id, invoice_id, ${at(now)}, coalesce(
        case kind
          when 'invoice' then (
            select invoice_verdict(items.clinic_id, items.client_id, t.home_clinic, t.servicing_clinic, t.client_id)
            from invoices t where t.organization_id = ${organization} and t.id = items.id
          )
          else (
            select line_verdict(items.invoice_id, items.clinic_id, t.invoice, t.clinic)
            from invoice_lines t where t.organization_id = ${organization} and t.id = items.id
          )
        end, 'not_found'),
        exists (select from organizations o where o.organization_id = ${organization})
      from items
      on conflict do nothing
      returning 1
      )
      insert into deletions_unsettled (organization_id, task_id)
      select ${organization}, ${taskId}::uuid where exists (select from facts) returning 1`
    if (noted.length === 0)
      yield* sql`update deletions set verdict = 'deleted' where ${isFact(claim)} and verdict = 'failed'`
  })

  /** Forgets what a task did not find, where more is remembered than may be: of its organization, or of all unknown ones. */
  const forget = (claim: Claim) => {
    const isFull = (condition: Fragment) => sql`
      (select count(*) from (
        select from deletions where verdict = 'not_found' and ${condition} limit ${sql.literal(`${bound + 1}`)}
      ) r) > ${bound}::integer`
    const ofUnknown = sql.distribution.isDistributed() === true ? sql`false` : isFull(sql`not is_known`)
    return sql`
      update deletions set verdict = 'forgotten'
      where ${isFact(claim)} and verdict = 'not_found' and undone_at is null
        and (${isFull(sql`organization_id = ${claim.organization}`)} or not is_known and ${ofUnknown})`
  }

  /** Counts the items whose rows were refused as failed. */
  const refuse = (claim: Claim, refused: ReadonlyArray<Marks.Refused>) => {
    const idsIn = (table: Marks.Row["table"]) => refused.flatMap(({ row }) => (row.table === table ? [row.id] : []))
    return sql`
      update deletions d set verdict = 'failed' from (
        select kind, item from deletion_rows
        where ${isFact(claim)} and (
          table_name = 'invoices' and invoice = any (${idsIn("invoices")}::text[])
          or table_name = 'invoice_lines' and line = any (${idsIn("invoice_lines")}::text[])
        )
      ) r
      where d.organization_id = ${claim.organization} and d.task_id = ${claim.taskId}::uuid and d.kind = r.kind and d.item = r.item`
  }

  /** Writes the outcome of a task, which has ended if all its rows are marked. */
  const end = (claim: Claim, now: DateTime.Utc, hasEnded: boolean) =>
    outcomes(sql`
      update deletion_tasks set
        outcome = (
          select jsonb_build_object(
            'invoices', ${sql.literal(counts("invoice", Outcome.fields.invoices.fields))},
            'invoice_lines', ${sql.literal(counts("line", Outcome.fields.invoice_lines.fields))}
          ) from deletions where ${isFact(claim)} and undone_at is null
        ) || jsonb_build_object('lines_of_invoices', (
          select count(distinct line) from deletion_rows
          where ${isFact(claim)} and undone_at is null and holds and is_deleted and kind = 'invoice' and table_name = 'invoice_lines'
        ))
        ${hasEnded ? sql`, state = 'completed', due_at = null, claim_token = null, last_error = null, finished_at = ${at(now)}` : sql``}
      where ${isTask(claim)} returning outcome`)

  /** The end of a run whose rows were marked, in the transaction of the last ones. */
  const finish = Effect.fnUntraced(function* (
    claim: Claim,
    { locked: held, refused }: Marks.Unchanged
  ): Effect.fn.Return<RunOutcome, SqlError> {
    const now = yield* DateTime.now
    if (Array.isReadonlyArrayNonEmpty(refused)) {
      yield* refuse(claim, refused)
      yield* end(claim, now, false)
      return { failed: `${refused.length} rows were not marked: ${refused[0].reason}` }
    }
    if (held > 0) return locked
    const [done] = yield* end(claim, now, true)
    if (done !== undefined && done.outcome.invoices.not_found + done.outcome.invoice_lines.not_found > 0)
      yield* forget(claim)
    return done?.outcome
  })

  /** Runs the task of an attempt. */
  return Effect.fnUntraced(function* (claim: Claim): Effect.fn.Return<RunOutcome, SqlError> {
    /** In a transaction that locks the row of the task; undefined if another worker has it. */
    const holding = <A>(statements: (change: Change) => Effect.Effect<A, SqlError>) =>
      Marks.changing(sql, claim.organization, (change) =>
        inTransaction(
          sql,
          Effect.gen(function* () {
            const dueAt = sql`${at(yield* DateTime.now)} + ${grace}::interval`
            const held = yield* sql`
              with settings as materialized (${Marks.settings(sql)})
              update deletion_tasks set due_at = ${dueAt} from settings where ${isHeld(claim)} returning 1`
            return held.length === 0 ? undefined : yield* statements(change)
          })
        )
      )
    const outcome = yield* holding((change) =>
      Effect.gen(function* () {
        yield* remember(claim)
        const rows = yield* Marks.named(sql, claim, sql`true`)
        if (rows.length > Marks.mostRows) return many
        const invoices = rows.filter(({ table }) => table === "invoices")
        const changed = yield* change(invoices)
        const isAll = changed.locked + changed.refused.length === 0
        const next = isAll ? rows : yield* Marks.named(sql, claim, sql`is_next`)
        const lines = next.filter(({ table }) => table === "invoice_lines")
        return yield* finish(claim, Marks.together([changed, yield* change(lines)]))
      })
    )
    if (outcome !== many) return outcome
    const until = (yield* Clock.monotonicTimeNanos) + longestRun
    let changed = Marks.unchanged
    for (const table of Marks.tables) {
      // Those that were deleted before stay as they are, so that each attempt has fewer.
      const rows = yield* Marks.inMarking(sql, Marks.named(sql, claim, sql`is_next and not is_deleted`))
      for (const chunk of Array.chunksOf(
        rows.filter((row) => row.table === table),
        Marks.mostRows
      )) {
        const some = yield* holding((change) => change(chunk))
        if (some === undefined) return undefined
        if ((yield* Clock.monotonicTimeNanos) > until) return unfinished
        changed = Marks.together([changed, some])
      }
    }
    return yield* holding(() => finish(claim, changed))
  })
}
