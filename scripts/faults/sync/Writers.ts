/**
 * Writers that take steps in turn, each in a session of its own. A statement that waits for a lock keeps no other writer
 * waiting: the next steps are taken, and those of its own writer are left out until the lock is free.
 */
import { Effect, Exit, Fiber } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { sqlMessage } from "../../../src/database/SqlFailure.ts"
import type { History, Step } from "./History.ts"
import type { Organizations } from "./Room.ts"
import type { Session } from "./Session.ts"
import type { Stand } from "./Stand.ts"
import { type Statement, statementsOf } from "./statements.ts"

/** A step of a writer. */
type WriterStep = Extract<Step, { readonly writer: number }>

interface Writer {
  readonly session: Session
  isOpen: boolean
  savepoints: number
  /** What it is still waiting for. */
  busy: Fiber.Fiber<unknown, SqlError> | undefined
}

const skipped = Effect.succeed("left out")

/** The writers of a history. */
export const make = (stand: Stand, history: History, organizations: Organizations) => {
  const { observer } = stand
  const writers = stand.sessions
    .slice(0, history.writers)
    .map((session): Writer => ({ session, isOpen: false, savepoints: 0, busy: undefined }))
  let prepared: Array<string> = []
  let preparedCount = 0

  const isBlocked = ({ session: { pid } }: Writer) =>
    pid === undefined
      ? Effect.succeed(false)
      : observer.run("select from unnest(pg_blocking_pids($1)) limit 1", [pid]).pipe(
          Effect.map((rows) => rows.length > 0),
          Effect.orDie
        )

  /** True if a transaction is open, so that it may hold back what others commit. */
  const isOpen = () => prepared.length > 0 || writers.some((writer) => writer.isOpen || writer.busy !== undefined)

  /** Waits until what a writer runs has ended, or waits for a lock. */
  const untilDoneOrBlocked = Effect.fnUntraced(function* (writer: Writer) {
    while (writer.busy !== undefined) {
      const { busy } = writer
      yield* Effect.timeoutOption(Fiber.await(busy), "3 millis")
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
  const send = Effect.fnUntraced(function* (writer: Writer, ...statements: ReadonlyArray<Statement>) {
    let failure = ""
    const work = Effect.forEach(statements, ({ text, params }) => writer.session.run(text, params), {
      discard: true
    }).pipe(Effect.tapError((error) => Effect.sync(() => (failure = `: ${sqlMessage(error)}`))))
    writer.busy = yield* Effect.forkChild(work)
    const state = yield* untilDoneOrBlocked(writer)
    return `${state}${failure}`
  })

  /** Ends the open transaction. */
  const end = (writer: Writer, text: string) => {
    Object.assign(writer, { isOpen: false, savepoints: 0 })
    return send(writer, { text })
  }

  /** Ends the transaction that was prepared first. */
  const finish = Effect.fnUntraced(function* (session: Session, isCommit: boolean) {
    const first = prepared.shift()
    if (first === undefined) return "left out"
    yield* Effect.orDie(session.run(`${isCommit ? "commit" : "rollback"} prepared '${first}'`))
    return "done"
  })

  const prepare = Effect.fnUntraced(function* (writer: Writer) {
    const title = `${organizations[0]}_${++preparedCount}`
    const seen = yield* end(writer, `prepare transaction '${title}'`)
    // A transaction that failed before ends as a rollback, whatever was said.
    const rows = yield* Effect.orDie(observer.run("select from pg_prepared_xacts where gid = $1", [title]))
    if (rows.length > 0) prepared.push(title)
    return seen
  })

  const act = (writer: Writer, step: WriterStep): Effect.Effect<string> => {
    switch (step._tag) {
      case "Begin": {
        writer.isOpen = true
        const begin = { text: `begin isolation level ${step.isolation}` }
        const asynchronous = step.isAsynchronous ? [{ text: "set local synchronous_commit = off" }] : []
        const replicating = step.isReplicating ? [{ text: "set local session_replication_role = replica" }] : []
        return send(writer, begin, ...asynchronous, ...replicating)
      }
      case "Commit":
        return end(writer, "commit")
      case "Rollback":
        return end(writer, "rollback")
      case "Savepoint":
        return send(writer, { text: `savepoint s${++writer.savepoints}` })
      case "RollbackTo":
        return writer.savepoints === 0 ? skipped : send(writer, { text: `rollback to savepoint s${writer.savepoints}` })
      case "Prepare":
        return prepare(writer)
      case "Finish":
        return finish(writer.session, step.isCommit)
      case "Write": {
        const room = history.rooms[step.room]
        // Readers would wait for a TRUNCATE that waits for a transaction.
        return room === undefined || (step.change._tag === "Truncate" && isOpen())
          ? skipped
          : send(writer, ...statementsOf(room, organizations, step.change))
      }
    }
  }

  /** Those that waited for what has just ended go on before the next step. */
  const letOthersGoOn = Effect.forEach(writers, untilDoneOrBlocked, { discard: true })

  return {
    /** Takes a step, and says what came of it. */
    take: (step: WriterStep) =>
      Effect.suspend(() => {
        const writer = writers[step.writer]
        const isOutside = step._tag === "Begin" || step._tag === "Finish"
        return writer === undefined ||
          writer.busy !== undefined ||
          (step._tag !== "Write" && writer.isOpen === isOutside)
          ? skipped
          : Effect.tap(act(writer, step), letOthersGoOn)
      }),
    /** Ends all transactions: every other one with a commit. */
    settle: Effect.gen(function* () {
      let isCommit = true
      while (isOpen()) {
        for (const writer of writers) {
          if ((yield* untilDoneOrBlocked(writer)) === "waits for a lock" || !writer.isOpen) continue
          yield* end(writer, isCommit ? "commit" : "rollback")
          yield* letOthersGoOn
          isCommit = !isCommit
        }
        yield* finish(observer, isCommit)
        yield* letOthersGoOn
      }
    }),
    isOpen,
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
