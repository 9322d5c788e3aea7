/**
 * The sweep: a transaction that looked for facts of deletions before they were committed may still bring a row that they
 * delete. Later transactions see them. So a worker reads which tasks are unsettled, notes the transactions that are open
 * then, applies the facts, and applies them again as those transactions end. A loader may run for hours and delays nothing.
 * Any number of workers may sweep, each with notes of its own.
 */
import { Array, Context, Duration, Effect, Equal, Layer, Ref, Schema } from "effect"
import { decodeRows, decodeTexts } from "../database/Columns.ts"
import { TaskDatabase } from "../database/Database.ts"
import { inTransaction } from "../database/SqlFailure.ts"
import * as Loop from "../observability/Loop.ts"
import * as Time from "../observability/Time.ts"
import * as Marks from "./Marks.ts"
import { inTime } from "./Scheduler.ts"

/** The tasks that were noted between two snapshots, and the transactions that may have missed their facts. */
interface Batch {
  readonly since: string
  readonly until: string
  readonly awaited: ReadonlySet<string>
  /** True if rows were left at the last look: others hold or refuse them. */
  readonly isLeft: boolean
}

/** The snapshot that shows no transaction. */
const beginning = "1:1:"

const tasks = decodeRows(Schema.Struct({ organization: Schema.String, ids: Schema.Array(Schema.String) }))

/** The tasks that are looked at in one statement. */
const mostTasks = 5000

/** The time between steps. */
const pause = Duration.millis(500)

const isPrepared = (transaction: string) => transaction.startsWith("prepared ")

const isSame = (one: Batch, another: Batch) =>
  one.isLeft === another.isLeft && Equal.equals(one.awaited, another.awaited)

/** Joins neighbours that wait for the same transactions. */
const joined = Array.match({
  onEmpty: () => [],
  onNonEmpty: (batches: Array.NonEmptyReadonlyArray<Batch>) =>
    Array.groupWith(batches, isSame).map((same) => ({ ...same[0], until: Array.lastNonEmpty(same).until }))
})

/** The batches of a sweep, the snapshot up to which it has read, and the transactions that were open. */
interface State {
  readonly batches: ReadonlyArray<Batch>
  readonly read: string
  readonly open: ReadonlySet<string>
}

const idle: State = { batches: [], read: beginning, open: new Set() }

/** Sweeps step by step. */
export const make = Effect.gen(function* () {
  const sql = yield* TaskDatabase
  const state = yield* Ref.make(idle)

  const asSweep = inTime(sql, "the sweep", Duration.seconds(65))

  /** Transactions of this database that may write: those that run, without autovacuums, which have no user; and prepared ones. */
  const onServer = `
    select l.virtualxid as text from pg_locks l join pg_stat_activity a on a.pid = l.pid
    where l.locktype = 'virtualxid' and l.granted and l.pid <> pg_backend_pid()
      and a.usesysid is not null and a.datid = (select oid from pg_database where datname = current_database())
    union all
    select 'prepared ' || gid from pg_prepared_xacts where database = current_database()`

  /** The transactions of all servers: the rows of an organization are written on its own server. */
  const transactions = Effect.suspend(() => {
    const others = sql`
      union all
      select text || ' on ' || nodename || ':' || nodeport
      from run_command_on_workers(${`select coalesce(json_agg(text), '[]') from (${onServer}) t`})
      cross join lateral json_array_elements_text(result::json) t (text)`
    return decodeTexts(sql`${sql.literal(onServer)} ${sql.distribution.isDistributed() === true ? others : sql``}`)
  })

  const isIn = ({ since, until }: Batch) => sql`
    n.written_by >= pg_snapshot_xmin(${since}::pg_snapshot) and not pg_visible_in_snapshot(n.written_by, ${since}::pg_snapshot)
    and pg_visible_in_snapshot(n.written_by, ${until}::pg_snapshot)`

  /** The tasks of a batch. */
  const readTasks = Effect.fnUntraced(function* (batch: Batch) {
    const found = yield* tasks(sql`
      select n.organization_id as organization, array_agg(distinct n.task_id::text) as ids
      from deletions_unsettled n where ${isIn(batch)} group by 1`)
    return found.flatMap(({ ids, organization }) =>
      Array.chunksOf(ids, mostTasks).map((some): Marks.Tasks => ({ organization, ids: some }))
    )
  }, asSweep)

  /** The tasks of an organization that have work left. */
  const unapplied = ({ ids, organization }: Marks.Tasks) =>
    Marks.inMarking(
      sql,
      decodeTexts(sql`
        select distinct task_id::text as text from deletion_work
        where organization_id = ${organization} and task_id = any (${ids}::uuid[])`)
    )

  /** Applies the facts of tasks. Returns those that have rows left: others hold or refuse them, or the database failed. */
  const applyOwn = Effect.fnUntraced(function* (noted: Marks.Tasks) {
    const own = { ...noted, ids: yield* asSweep(unapplied(noted)) }
    if (own.ids.length === 0) return own.ids
    yield* Effect.ignore(asSweep(Effect.andThen(Marks.judge(sql, own), Marks.apply(sql, own))))
    return yield* asSweep(unapplied(own))
  })

  /** Deletes facts that are about to be forgotten, once no open transaction may have missed that. */
  const forget = sql`
    delete from deletions d where d.verdict = 'forgotten' and not exists (
      select from deletions_unsettled n where n.organization_id = d.organization_id and n.task_id = d.task_id
    )`

  /** The batch after a step; none if it is settled. `prepared`: the transactions that have been prepared since. */
  const settle = Effect.fnUntraced(function* (
    batch: Batch,
    open: ReadonlySet<string>,
    prepared: ReadonlyArray<string>
  ) {
    const ended = [...batch.awaited].filter((id) => !open.has(id))
    if (ended.length === 0 && !batch.isLeft && batch.awaited.size > 0) return [batch]
    // One that ran may have been prepared since.
    const others = ended.every(isPrepared) ? [] : prepared
    const awaited = new Set([...batch.awaited, ...others].filter((id) => open.has(id)))
    const noted = yield* readTasks(batch)
    if (noted.length === 0) return []
    const left = (yield* Effect.forEach(noted, applyOwn)).flat()
    const next = [{ ...batch, awaited, isLeft: left.length > 0 }]
    if (awaited.size > 0) return next
    // Tasks that have rows left delay no other.
    const done = sql`delete from deletions_unsettled n where ${isIn(batch)} and n.task_id <> all (${left}::uuid[])`
    yield* asSweep(inTransaction(sql, Effect.andThen(done, forget)))
    return left.length > 0 ? next : []
  })

  const step = Effect.gen(function* () {
    const { batches, open: before, read } = yield* Ref.get(state)
    const noted = yield* asSweep(sql`select 1 from deletions_unsettled limit 1`)
    if (noted.length === 0) {
      yield* Ref.set(state, idle)
      return
    }
    // Rows from before a restore, or from another server, have an id that this server did not give out.
    yield* asSweep(sql`
      update deletions_unsettled set written_by = pg_current_xact_id()
      where written_by >= pg_snapshot_xmax(pg_current_snapshot())`)
    const [until = ""] = yield* asSweep(decodeTexts(sql`select pg_current_snapshot()::text as text`))
    // Read after the snapshot: a transaction that may have missed the facts that it shows is open, or has ended.
    const open = new Set(yield* asSweep(transactions))
    const prepared = [...open].filter((id) => isPrepared(id) && !before.has(id))
    // Rows that another process has given an id may become visible later than that id.
    const since = batches.length === 0 ? beginning : read
    const all = [...batches, { since, until, awaited: open, isLeft: true }]
    const settled = yield* Effect.forEach(all, (batch) => settle(batch, open, prepared))
    yield* Ref.set(state, { batches: joined(settled.flat()), read: until, open })
  })

  return { step: Effect.andThen(sql.distribution.refresh, step) }
})

/** The sweep of a process. */
export class Sweep extends Context.Service<
  Sweep,
  {
    /** Sweeps without end. */
    readonly run: Effect.Effect<never>
    /** The seconds since it last swept, or since the process began. */
    readonly unswept: Effect.Effect<number>
  }
>()("practice-data/deletions/Sweep") {
  static readonly layer = Layer.effect(
    Sweep,
    Effect.gen(function* () {
      const { step } = yield* make
      const sweptAt = yield* Ref.make(yield* Time.monotonic)
      const swept = Effect.tap(step, () => Effect.flatMap(Time.monotonic, (now) => Ref.set(sweptAt, now)))
      // Where it fails, the database is down, or busy.
      const turn = Effect.andThen(Effect.ignore(swept), Effect.sleep(pause))
      const unswept = Effect.map(Effect.all([Time.monotonic, Ref.get(sweptAt)]), ([now, at]) => (now - at) / 1000)
      return { run: Loop.forever("The sweep of deletions", turn), unswept }
    })
  )
}
