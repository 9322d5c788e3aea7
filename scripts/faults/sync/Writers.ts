/**
 * Writers that take steps in turn, each in a session of its own. A statement that waits for a lock keeps no other writer
 * waiting: the next steps are taken, and those of its own writer are left out until the lock is free.
 */
import { Clock, Effect, Exit, Fiber } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Change, Isolation } from "./History.ts"
import type { Organizations, Room } from "./Room.ts"
import type { Session } from "./Session.ts"
import { type Statement, statementsOf } from "./statements.ts"

interface Writer {
  readonly session: Session
  /** When its transaction began; none is open where it is undefined. */
  begunAt: number | undefined
  savepoints: number
  /** What it is still waiting for. */
  busy: Fiber.Fiber<unknown, SqlError> | undefined
}

interface Prepared {
  readonly name: string
  readonly begunAt: number
}

/** How long a statement may take before somebody looks whether it waits for a lock. */
const quick = "3 millis"

export interface Writers {
  /** Each of these takes a step, and says what came of it: nothing where the step has no meaning now. */
  readonly begin: (
    writer: number,
    options: { readonly isolation: Isolation; readonly isAsynchronous: boolean; readonly isReplicating: boolean }
  ) => Effect.Effect<string>
  readonly commit: (writer: number) => Effect.Effect<string>
  readonly rollback: (writer: number) => Effect.Effect<string>
  readonly savepoint: (writer: number) => Effect.Effect<string>
  readonly rollbackTo: (writer: number) => Effect.Effect<string>
  readonly prepare: (writer: number) => Effect.Effect<string>
  readonly finish: (writer: number, isCommit: boolean) => Effect.Effect<string>
  readonly write: (writer: number, room: Room, organizations: Organizations, change: Change) => Effect.Effect<string>
  /** Ends all transactions: every other one with a commit. */
  readonly settle: Effect.Effect<void>
  /** Whether any transaction is open, so that it may hold back what others commit. */
  readonly isOpen: () => boolean
  /** Whether any statement waits for a lock, which may be free at any time where writers meet in a deadlock. */
  readonly isWaiting: () => boolean
  /** The longest that a transaction took so far, in milliseconds. */
  readonly longest: () => number
}

const reasonOf = (error: SqlError) => {
  const { cause } = error.reason
  return cause instanceof Error ? cause.message : error.message
}

const skipped = "left out"

/** @param observer a session in which nobody writes */
export const make = (observer: Session, sessions: ReadonlyArray<Session>, name: string): Writers => {
  const writers = sessions.map((session): Writer => ({ session, begunAt: undefined, savepoints: 0, busy: undefined }))
  const prepared: Array<Prepared> = []
  let preparedCount = 0
  let longest = 0

  const isBlocked = ({ session: { pid } }: Writer) =>
    pid === undefined
      ? Effect.succeed(false)
      : observer.run("select from unnest(pg_blocking_pids($1)) limit 1", [pid]).pipe(
          Effect.map((rows) => rows.length > 0),
          Effect.orDie
        )

  /** Waits until what a writer runs has ended, or waits for a lock. */
  const untilDoneOrBlocked = Effect.fnUntraced(function* (writer: Writer) {
    while (writer.busy !== undefined) {
      const { busy } = writer
      yield* Effect.timeoutOption(Fiber.await(busy), quick)
      const exit = busy.pollUnsafe()
      if (exit !== undefined) {
        writer.busy = undefined
        return Exit.isSuccess(exit) ? "done" : "failed"
      }
      if (yield* isBlocked(writer)) return "waits for a lock"
    }
    return "done"
  })

  const endedAt = (begunAt: number) =>
    Effect.map(Clock.currentTimeMillis, (now) => {
      longest = Math.max(longest, now - begunAt)
    })

  /** Runs statements one after the other. */
  const send = Effect.fnUntraced(function* (writer: Writer, statements: ReadonlyArray<Statement>, ends?: number) {
    let failure = ""
    const work = Effect.forEach(statements, ({ text, params }) => writer.session.run(text, params), {
      discard: true
    }).pipe(
      Effect.tapError((error) => Effect.sync(() => (failure = `: ${reasonOf(error)}`))),
      Effect.ensuring(ends === undefined ? Effect.void : endedAt(ends))
    )
    writer.busy = yield* Effect.forkChild(work)
    const state = yield* untilDoneOrBlocked(writer)
    return `${state}${failure}`
  })

  /** Those that waited for what has just ended go on before the next step. */
  const letOthersGoOn = Effect.forEach(writers, untilDoneOrBlocked, { discard: true })

  const idle = (at: number) => {
    const writer = writers[at]
    return writer === undefined || writer.busy !== undefined ? undefined : writer
  }

  const end = Effect.fnUntraced(function* (writer: Writer, text: string) {
    const { begunAt } = writer
    if (begunAt === undefined) return skipped
    writer.begunAt = undefined
    writer.savepoints = 0
    const seen = yield* send(writer, [{ text, params: [] }], begunAt)
    yield* letOthersGoOn
    return seen
  })

  const within = (at: number, work: (writer: Writer) => Effect.Effect<string>) => {
    const writer = idle(at)
    return writer === undefined ? Effect.succeed(skipped) : work(writer)
  }

  const finish = Effect.fnUntraced(function* (session: Session, isCommit: boolean) {
    const first = prepared.shift()
    if (first === undefined) return skipped
    yield* Effect.orDie(session.run(`${isCommit ? "commit" : "rollback"} prepared '${first.name}'`))
    yield* endedAt(first.begunAt)
    yield* letOthersGoOn
    return "done"
  })

  return {
    begin: (at, { isAsynchronous, isolation, isReplicating }) =>
      within(at, (writer) =>
        Effect.gen(function* () {
          if (writer.begunAt !== undefined) return skipped
          writer.begunAt = yield* Clock.currentTimeMillis
          const settings = [
            ...(isAsynchronous ? ["set local synchronous_commit = off"] : []),
            ...(isReplicating ? ["set local session_replication_role = replica"] : [])
          ]
          return yield* send(
            writer,
            [`begin isolation level ${isolation}`, ...settings].map((text) => ({ text, params: [] }))
          )
        })
      ),
    commit: (at) => within(at, (writer) => end(writer, "commit")),
    rollback: (at) => within(at, (writer) => end(writer, "rollback")),
    savepoint: (at) =>
      within(at, (writer) => {
        if (writer.begunAt === undefined) return Effect.succeed(skipped)
        writer.savepoints++
        return send(writer, [{ text: `savepoint s${writer.savepoints}`, params: [] }])
      }),
    rollbackTo: (at) =>
      within(at, (writer) =>
        Effect.gen(function* () {
          if (writer.begunAt === undefined || writer.savepoints === 0) return skipped
          const seen = yield* send(writer, [{ text: `rollback to savepoint s${writer.savepoints}`, params: [] }])
          yield* letOthersGoOn
          return seen
        })
      ),
    prepare: (at) =>
      within(at, (writer) =>
        Effect.gen(function* () {
          const { begunAt } = writer
          if (begunAt === undefined) return skipped
          const title = `${name}_${++preparedCount}`
          writer.begunAt = undefined
          writer.savepoints = 0
          const seen = yield* send(writer, [{ text: `prepare transaction '${title}'`, params: [] }])
          // A transaction that failed before ends as a rollback, whatever was said.
          const rows = yield* Effect.orDie(observer.run("select from pg_prepared_xacts where gid = $1", [title]))
          if (rows.length > 0) prepared.push({ name: title, begunAt })
          yield* letOthersGoOn
          return seen
        })
      ),
    finish: (at, isCommit) =>
      within(at, ({ begunAt, session }) =>
        begunAt === undefined ? finish(session, isCommit) : Effect.succeed(skipped)
      ),
    write: (at, room, organizations, change) =>
      within(at, (writer) =>
        Effect.gen(function* () {
          const statements = statementsOf(room, organizations, change)
          const begunAt = writer.begunAt === undefined ? yield* Clock.currentTimeMillis : undefined
          const seen = yield* send(writer, statements, begunAt)
          yield* letOthersGoOn
          return seen
        })
      ),
    settle: Effect.gen(function* () {
      let isCommit = true
      while (prepared.length > 0 || writers.some(({ begunAt, busy }) => begunAt !== undefined || busy !== undefined)) {
        for (const writer of writers) {
          if ((yield* untilDoneOrBlocked(writer)) === "waits for a lock") continue
          if (writer.begunAt !== undefined) {
            yield* end(writer, isCommit ? "commit" : "rollback")
            isCommit = !isCommit
          }
        }
        yield* finish(observer, isCommit)
      }
    }),
    isOpen: () =>
      prepared.length > 0 || writers.some(({ begunAt, busy }) => begunAt !== undefined || busy !== undefined),
    isWaiting: () => writers.some(({ busy }) => busy !== undefined),
    longest: () => longest
  }
}
