/**
 * Writers that take steps in turn, each in a session of its own. A statement that waits for a lock keeps no other writer
 * waiting: the next steps are taken, and those of its own writer are left out until the lock is free.
 */
import { type Data, Effect, Exit, Fiber } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Change, Step } from "./History.ts"
import type { Organizations, Room } from "./Room.ts"
import type { Session } from "./Session.ts"
import { type Statement, statementsOf } from "./statements.ts"

type Beginning = Omit<Data.TaggedEnum.Value<Step, "Begin">, "_tag" | "writer">

interface Writer {
  readonly session: Session
  isOpen: boolean
  savepoints: number
  /** What it is still waiting for. */
  busy: Fiber.Fiber<unknown, SqlError> | undefined
}

/** The time that a statement may take before it is looked at whether it waits for a lock. */
const quick = "3 millis"

const reasonOf = (error: SqlError) => {
  const { cause } = error.reason
  return cause instanceof Error ? cause.message : error.message
}

const skipped = "left out"

/**
 * Writers, each of whose methods takes a step and says what came of it.
 *
 * @param observer a session in which nobody writes
 */
export const make = (observer: Session, sessions: ReadonlyArray<Session>, name: string) => {
  const writers = sessions.map((session): Writer => ({ session, isOpen: false, savepoints: 0, busy: undefined }))
  let prepared: Array<string> = []
  let preparedCount = 0

  const isBlocked = ({ session: { pid } }: Writer) =>
    pid === undefined
      ? Effect.succeed(false)
      : observer.run("select from unnest(pg_blocking_pids($1)) limit 1", [pid]).pipe(
          Effect.map((rows) => rows.length > 0),
          Effect.orDie
        )

  const isBusy = () => writers.some(({ isOpen, busy }) => isOpen || busy !== undefined)

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

  /** Runs statements one after the other. */
  const send = Effect.fnUntraced(function* (writer: Writer, statements: ReadonlyArray<Statement>) {
    let failure = ""
    const work = Effect.forEach(statements, ({ text, params }) => writer.session.run(text, params), {
      discard: true
    }).pipe(Effect.tapError((error) => Effect.sync(() => (failure = `: ${reasonOf(error)}`))))
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
    if (!writer.isOpen) return skipped
    writer.isOpen = false
    writer.savepoints = 0
    const seen = yield* send(writer, [{ text, params: [] }])
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
    yield* Effect.orDie(session.run(`${isCommit ? "commit" : "rollback"} prepared '${first}'`))
    yield* letOthersGoOn
    return "done"
  })

  return {
    begin: (at: number, { isAsynchronous, isolation, isReplicating }: Beginning) =>
      within(at, (writer) =>
        Effect.gen(function* () {
          if (writer.isOpen) return skipped
          writer.isOpen = true
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
    commit: (at: number) => within(at, (writer) => end(writer, "commit")),
    rollback: (at: number) => within(at, (writer) => end(writer, "rollback")),
    savepoint: (at: number) =>
      within(at, (writer) => {
        if (!writer.isOpen) return Effect.succeed(skipped)
        writer.savepoints++
        return send(writer, [{ text: `savepoint s${writer.savepoints}`, params: [] }])
      }),
    rollbackTo: (at: number) =>
      within(at, (writer) =>
        Effect.gen(function* () {
          if (!writer.isOpen || writer.savepoints === 0) return skipped
          const seen = yield* send(writer, [{ text: `rollback to savepoint s${writer.savepoints}`, params: [] }])
          yield* letOthersGoOn
          return seen
        })
      ),
    prepare: (at: number) =>
      within(at, (writer) =>
        Effect.gen(function* () {
          if (!writer.isOpen) return skipped
          const title = `${name}_${++preparedCount}`
          writer.isOpen = false
          writer.savepoints = 0
          const seen = yield* send(writer, [{ text: `prepare transaction '${title}'`, params: [] }])
          // A transaction that failed before ends as a rollback, whatever was said.
          const rows = yield* Effect.orDie(observer.run("select from pg_prepared_xacts where gid = $1", [title]))
          if (rows.length > 0) prepared.push(title)
          yield* letOthersGoOn
          return seen
        })
      ),
    finish: (at: number, isCommit: boolean) =>
      within(at, ({ isOpen, session }) => (isOpen ? Effect.succeed(skipped) : finish(session, isCommit))),
    write: (at: number, room: Room, organizations: Organizations, change: Change) =>
      within(at, (writer) =>
        Effect.gen(function* () {
          const seen = yield* send(writer, statementsOf(room, organizations, change))
          yield* letOthersGoOn
          return seen
        })
      ),
    /** Ends all transactions: every other one with a commit. */
    settle: Effect.gen(function* () {
      let isCommit = true
      while (prepared.length > 0 || isBusy()) {
        for (const writer of writers) {
          if ((yield* untilDoneOrBlocked(writer)) === "waits for a lock") continue
          if (writer.isOpen) {
            yield* end(writer, isCommit ? "commit" : "rollback")
            isCommit = !isCommit
          }
        }
        yield* finish(observer, isCommit)
      }
    }),
    /** True if a transaction is open, so that it may hold back what others commit. */
    isOpen: () => prepared.length > 0 || isBusy(),
    /** True if a statement waits for a lock, which may be free at any time where writers meet in a deadlock. */
    isWaiting: () => writers.some(({ busy }) => busy !== undefined),
    /** Begins anew after a crash, in the sessions as they are now: what was prepared is still there. */
    recover: Effect.gen(function* () {
      yield* Effect.forEach(writers, ({ busy }) => (busy === undefined ? Effect.void : Fiber.await(busy)))
      for (const writer of writers) Object.assign(writer, { isOpen: false, savepoints: 0, busy: undefined })
      const rows: ReadonlyArray<{ readonly gid?: string }> = yield* Effect.orDie(
        observer.run("select gid from pg_prepared_xacts order by prepared")
      )
      prepared = rows.map(({ gid = "" }) => gid)
    })
  }
}
