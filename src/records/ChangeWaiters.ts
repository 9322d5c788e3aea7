/** Readers of changes that wait until there are some: all of a process cost a statement for each table that they read. */
import { Array, Deferred, type Duration, Effect, Iterable, Option } from "effect"
import type { Gauge } from "../observability/Series.ts"
import type { Database } from "../database/Database.ts"

/** What a reader has seen. */
export interface Seen {
  readonly table: string
  readonly organization: string
  readonly position: number
  readonly id: string
  /** The horizon up to which there was nothing more. */
  readonly horizon: number
  /** As in a cursor: where the horizon completes the reader's first load. */
  readonly target: number
}

/** How many readers may wait at once, in all and of one organization. */
export interface Limits {
  readonly all: number
  readonly ofOne: number
}

/** The limits of a process that accepts so many connections: half of them, and an eighth for one organization. */
export const limitsFor = (connections: number): Limits => ({
  all: Math.ceil(connections / 2),
  ofOne: Math.ceil(connections / 8)
})

interface Waiter extends Seen {
  readonly woken: Deferred.Deferred<void>
}

const wake = (waiter: Waiter) => Deferred.succeed(waiter.woken, undefined)

/**
 * The waiters for the changes of a database.
 *
 * @param count shows how many there are
 * @param limits how many there may be
 */
export const make = (records: Database, count: Gauge, limits: Limits) => {
  const waiters = new Map<Waiter, Seen["horizon"]>()
  const waitingOf = (organization: string) =>
    Iterable.countBy(waiters.keys(), (waiter) => waiter.organization === organization)
  let isStopped = false
  count.set(0)

  /** The indexes of those for whom there are changes. */
  const findWoken = (table: string, given: ReadonlyArray<Waiter>) => {
    const name = records.literal(table)
    const isAfter = records`t.organization_id = w.organization and (t.change_position, t.id) > (w.position, w.id)
      and t.change_position < change_horizon()`
    return records<{ index: number }>`
      select (w.number - 1)::int as index
      from unnest(
        ${given.map(({ organization }) => organization)}::text[],
        ${given.map(({ position }) => position)}::bigint[],
        ${given.map(({ id }) => id)}::text[]
      ) with ordinality as w (organization, position, id, number)
      where exists (select from ${name} t where ${isAfter})
        or exists (select from removals t where t.table_name = ${table} and ${isAfter})`
  }

  return {
    /**
     * Waits for changes after those that were seen; false where the time was over first, too many wait already, or the
     * process stops.
     */
    wait: (seen: Seen, within: Duration.Duration) =>
      Effect.gen(function* () {
        const isFull = waiters.size >= limits.all || waitingOf(seen.organization) >= limits.ofOne
        if (isStopped || isFull) return false
        const waiter: Waiter = { ...seen, woken: yield* Deferred.make<void>() }
        waiters.set(waiter, seen.horizon)
        count.set(waiters.size)
        return yield* Deferred.await(waiter.woken).pipe(
          Effect.timeoutOption(within),
          Effect.map((woken) => Option.isSome(woken) && !isStopped),
          Effect.ensuring(
            Effect.sync(() => {
              waiters.delete(waiter)
              count.set(waiters.size)
            })
          )
        )
      }),

    /**
     * Wakes those for whom there are changes.
     *
     * @param run runs a statement; undefined where it failed
     */
    look: Effect.fnUntraced(function* (
      horizon: number,
      run: <A, E>(statement: Effect.Effect<ReadonlyArray<A>, E>) => Effect.Effect<ReadonlyArray<A> | undefined>
    ) {
      const behind = [...waiters].flatMap(([waiter, lookedUpTo]) => (lookedUpTo < horizon ? [waiter] : []))
      for (const [table, group] of Object.entries(Array.groupBy(behind, (waiter) => waiter.table))) {
        const woken = yield* run(findWoken(table, group))
        if (woken === undefined) continue
        for (const waiter of group) if (waiters.has(waiter)) waiters.set(waiter, horizon)
        const isComplete = ({ target }: Waiter) => target > 0 && target <= horizon
        const found = [...woken.flatMap(({ index }) => group[index] ?? []), ...group.filter(isComplete)]
        yield* Effect.forEach(found, wake, { discard: true })
      }
    }),

    /** Ends all waiting, now and from now on. */
    stop: Effect.suspend(() => {
      isStopped = true
      return Effect.forEach([...waiters.keys()], wake, { discard: true })
    })
  }
}
