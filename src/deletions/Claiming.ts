/**
 * Claims tasks: of all organizations by one statement; or, on a distributed database, where no statement may lock rows of
 * several organizations, by one that finds them, and one for each organization.
 */
import { randomUUID } from "node:crypto"
import { DateTime, type Duration, Effect, Ref, Result, type Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { type Database } from "../database/Database.ts"
import type { Distribution } from "../database/Distribution.ts"
import * as ClaimStatements from "./ClaimStatements.ts"
import type { Kind, Open, Taken } from "./ClaimStatements.ts"
import { byOrganization } from "./Owner.ts"
import type { ClaimLimits, SchedulerUnavailable } from "./Task.ts"
import * as Turns from "./Turns.ts"

/** Of how many organizations tasks are claimed at once. */
export const concurrency = 4

/** How often to look for others in place of tasks that other workers are just claiming. */
const mostPages = 16

/** A claim whose response was lost. It may have been made, and then nobody knows of it. */
export interface Lost {
  readonly token: string
  /** Undefined where it is of any organization. */
  readonly organization: string | undefined
}

export interface Options {
  readonly sql: Database
  readonly distribution: Distribution
  /** Whether claims have the trace of their delivery. */
  readonly tracesDeliveries: boolean
  /** Runs a statement of the worker. */
  readonly run: <A>(
    statement: Effect.Effect<A, SqlError | Schema.SchemaError>
  ) => Effect.Effect<A, SchedulerUnavailable>
  /** Releases claims that were lost. */
  readonly release: (lost: Lost) => Effect.Effect<unknown, SqlError>
}

type Claimed = Effect.Effect<ReadonlyArray<Taken>, SchedulerUnavailable>

/** How tasks are claimed over a database. */
export const make = Effect.fnUntraced(function* ({ distribution, release, run, sql, tracesDeliveries }: Options) {
  const statements = ClaimStatements.make(sql, tracesDeliveries)
  const lost = yield* Ref.make<ReadonlyArray<Lost>>([])

  const releaseLost = Effect.gen(function* () {
    for (const one of yield* Ref.get(lost)) {
      yield* run(release(one))
      yield* Ref.update(lost, (all) => all.filter((each) => each !== one))
    }
  })

  /** Claims, with a token of its own that is written down as lost where there is no response. */
  const claim = (
    organization: string | undefined,
    lease: Duration.Duration,
    statement: (lease: {
      readonly token: string
      readonly now: DateTime.Utc
      readonly leaseEnd: DateTime.Utc
    }) => Effect.Effect<ReadonlyArray<Taken>, SqlError | Schema.SchemaError>
  ): Claimed =>
    Effect.gen(function* () {
      const now = yield* DateTime.now
      const token = randomUUID()
      return yield* Effect.tapError(run(statement({ token, now, leaseEnd: DateTime.addDuration(now, lease) })), () =>
        Ref.update(lost, (all) => [...all, { token, organization }])
      )
    })

  const turns = Turns.make()

  const visit = Effect.fnUntraced(function* (after: string, limit: number) {
    const visiting = { after, now: yield* DateTime.now, limit }
    if (distribution.isDistributed() === false) return yield* run(statements.visit(visiting))
    const found = yield* run(statements.visitAllServers(visiting))
    return found.map((each, index) => ({ ...each, visits: index + 1 }))
  })

  const together = (limits: ClaimLimits, lease: Duration.Duration, shares: ReadonlyArray<Turns.Share> = []) => {
    const { alone = 0, due = 0, expired = 0 } = limits
    return claim(undefined, lease, (given) => statements.ofAll({ alone, due, expired, shares, ...given }))
  }

  /** Claims of several organizations. Where those of some fail, those of the others still are this worker's. */
  const ofEach = Effect.fnUntraced(function* <A>(all: ReadonlyArray<A>, claimOf: (one: A) => Claimed) {
    const results = yield* Effect.forEach(all, (one) => Effect.result(claimOf(one)), { concurrency })
    const [first] = results.filter(Result.isFailure)
    const taken = results.flatMap((result) => (Result.isSuccess(result) ? result.success : []))
    return first !== undefined && taken.length === 0 ? yield* first.failure : taken
  })

  const claimFound = Effect.fnUntraced(function* (kind: Kind, found: ReadonlyArray<Open>, lease: Duration.Duration) {
    const taken = yield* ofEach(byOrganization(found), (some) => {
      const { organization } = some[0]
      const ids = some.map(({ taskId }) => taskId)
      return claim(organization, lease, (given) => statements.ofOne({ organization, kind, ids, ...given }))
    })
    const places = new Map(found.map(({ taskId }, place) => [taskId, place]))
    return taken.toSorted((one, other) => (places.get(one.taskId) ?? 0) - (places.get(other.taskId) ?? 0))
  })

  const ofKind = Effect.fnUntraced(function* (kind: Kind, limit: number, lease: Duration.Duration) {
    const all: Array<Taken> = []
    let after: Open | undefined
    for (let page = 0; page < mostPages && all.length < limit; page++) {
      const wanted = limit - all.length
      const place = after
      const found = yield* Effect.flatMap(DateTime.now, (now) =>
        run(statements.find({ kind, now, limit: wanted, after: place }))
      )
      if (found.length > 0) all.push(...(yield* claimFound(kind, found, lease)))
      if (found.length < wanted) break
      after = found.at(-1)
    }
    return all
  })

  const apart = Effect.fnUntraced(function* (
    limits: ClaimLimits,
    lease: Duration.Duration,
    shares: ReadonlyArray<Turns.Share> = []
  ) {
    const all: Array<Taken> = []
    for (const kind of ClaimStatements.kinds) {
      const claiming =
        kind === "due" && shares.length > 0
          ? ofEach(shares, ({ organization, tasks }) =>
              claim(organization, lease, (given) => statements.oldestOfOne({ organization, tasks, ...given }))
            )
          : ofKind(kind, limits[kind] ?? 0, lease)
      const claimed = yield* Effect.result(claiming)
      if (Result.isSuccess(claimed)) all.push(...claimed.success)
      else if (all.length === 0) return yield* claimed.failure
      else break
    }
    return all
  })

  /** Claims tasks, and marks those dead that have no attempt left. */
  return Effect.fnUntraced(function* (limits: ClaimLimits, lease: Duration.Duration) {
    yield* distribution.refresh
    yield* releaseLost
    const claiming = distribution.isDistributed() === false ? together : apart
    const { due = 0, except } = limits
    if (except !== undefined) {
      const shares = yield* turns.others(except, due, visit)
      return yield* claiming(shares.length > 0 ? limits : { ...limits, due: 0 }, lease, shares)
    }
    const shares = yield* turns.next(due, visit)
    const taken = yield* claiming(limits, lease, shares)
    if (due === 0) return taken
    const left = due - taken.filter(({ isTakeover }) => !isTakeover).length
    // Where those whose turn it is have fewer, the oldest of all take their places.
    const others =
      left > 0 && shares.length > 0 ? yield* Effect.result(claiming({ due: left }, lease)) : Result.succeed([])
    const all = Result.isSuccess(others) ? [...taken, ...others.success] : taken
    turns.note(all.length >= due)
    return all
  })
})
