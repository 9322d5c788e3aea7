/** Plays a history: takes its steps, lets all transactions end, lets every reader read on, and compares. */
import { Array, Effect, Fiber, Option, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { json } from "../../../test/support/Client.ts"
import { type Event, type History, type Manner, Step } from "./History.ts"
import { compare, type Outcome, type Played } from "./outcome.ts"
import * as Reader from "./Reader.ts"
import { type Kind, ledgers, type Organizations, type Room, tables } from "./Room.ts"
import type { Ask } from "./Service.ts"
import type { Moment } from "./Servers.ts"
import type { Stand } from "./Stand.ts"
import { statementsOf } from "./statements.ts"
import * as Writers from "./Writers.ts"

const truthOf = Effect.fnUntraced(function* ({ observer }: Stand, { kinds, organization, room }: Reading) {
  const selected = kinds?.map(({ resource, table }) => ({ id: `'${resource} ' || id`, table }))
  const rows: ReadonlyArray<{ readonly id?: string; readonly record?: string }> = yield* observer.run(
    (selected ?? [{ id: "id", table: room.kind.table }])
      .map(({ id, table }) => `select ${id} as id, record from ${table} where organization_id = $1`)
      .join(" union all "),
    [organization]
  )
  return new Map(rows.map(({ id = "", record = "" }) => [id, record]))
})

const keyOf = (organization: string) => `pda_sync_${organization}`

/** The organizations of a history with their keys and first records. */
const prepare = Effect.fnUntraced(function* (
  { observer }: Stand,
  { counts, rooms }: History,
  organizations: Organizations
) {
  yield* observer.run(
    `insert into api_keys (organization_id, id, name, prefix, key_hash, last_used_on)
     select o, 'key', 'sync', 'pda_sync_', sha256(convert_to('pda_sync_' || o, 'UTF8')), (now() at time zone 'UTC')::date
     from unnest($1::text[]) o`,
    [organizations]
  )
  for (const [at, room] of rooms.entries()) {
    const ids = Array.makeBy(counts[at] ?? 0, (number) => `r${number + 1}`)
    if (ids.length === 0) continue
    const insert = statementsOf(room, organizations, {
      _tag: "Insert",
      ids,
      stamp: "now()",
      onConflict: "fail"
    })
    for (const { text, params } of insert) yield* observer.run(text, params)
  }
})

// Small ones cost most of the time that a history takes.
const drainLimits = [1000, 7, 1000, 40, 3, 1000, 15, 2, 1000, 40, 7] as const

/** A reader that comes to no end within so many pages never does. */
const endless = 2000

interface Reading {
  readonly reader: Reader.Reader
  readonly manner: Manner
  readonly room: Room
  readonly organization: string
  /** What a reader of all resources reads now. */
  kinds: ReadonlyArray<Kind> | undefined
  /** What the reader has seen at most, and had when it saved. Undefined where nobody knows. */
  seen: Moment | undefined
  saved: Moment | undefined
  pages: number
  trouble: string | undefined
  /** A page that is read while the history goes on. */
  beside: Fiber.Fiber<unknown, SqlError> | undefined
}

let played = 0

/** Plays a history. A stand that breaks is an error; whatever readers meet is an outcome. */
export const play = Effect.fnUntraced(function* (stand: Stand, history: History) {
  const name = `sync_${history.seed}_${history.number}_${++played}`
  const organizations = [`${name}_a`, `${name}_b`] as const
  const { replica = stand.primary, servers } = stand
  const hasEvents = history.steps.some(({ _tag }) => _tag === "Befall")
  const hasTruncate = history.steps.some((step) => step._tag === "Write" && step.change._tag === "Truncate")
  const happened: Array<readonly [what: string, seen: string]> = []
  const writers = Writers.make(stand.observer, stand.sessions.slice(0, history.writers), name)

  // Files that are copied have little in them.
  if (hasEvents)
    yield* stand.observer.run(`truncate removals, ${[...tables, ...ledgers.map(({ table }) => table)].join()}`)
  yield* prepare(stand, history, organizations)
  if (hasEvents) yield* stand.caughtUp
  const allKinds = [...Array.dedupe(history.rooms.map(({ kind }) => kind)), ...ledgers]
  const readings = history.readers.flatMap(({ isOfAll, manner, room: at }): ReadonlyArray<Reading> => {
    const room = history.rooms[at]
    if (room === undefined) return []
    const organization = organizations[room.organization]
    const kinds = isOfAll ? allKinds : undefined
    let turns = 0
    const inTurn: Ask = (...request) => (turns++ % 2 === 0 ? stand.primary(...request) : replica(...request))
    const reader = Reader.make({
      kind: room.kind,
      ...(kinds && { kinds }),
      key: keyOf(organization),
      ask: manner === "replica" ? replica : manner === "both" ? inTurn : stand.primary
    })
    const nothing = { seen: undefined, saved: undefined, pages: 0, trouble: undefined, beside: undefined }
    return [{ reader, manner, room, organization, kinds, ...nothing }]
  })

  /** Reads a page, and checks what the service says of it where nothing else happens meanwhile. */
  const page = Effect.fnUntraced(function* (reading: Reading, limit: number, isAlone: boolean, wait = 0) {
    if (reading.trouble !== undefined) return { seen: "left out", isDone: true }
    const isQuiet = isAlone && !writers.isWaiting()
    const count = servers?.count()
    const { isCurrent, isDone, isGone, seen } = yield* Effect.catchTag(
      reading.reader.page(limit, wait),
      "Refused",
      ({ message }) =>
        Effect.sync(() => {
          reading.trouble = message
          return { seen: message, isDone: true, isCurrent: false, isGone: false }
        })
    )
    reading.pages++
    const isTruncated = reading.kinds === undefined && hasTruncate
    if (isGone && !isTruncated && (servers === undefined || (reading.seen && servers.has(reading.seen)))) {
      reading.trouble = "410 for a cursor whose changes are all there"
    }
    const moment = isGone || servers === undefined ? undefined : yield* Effect.option(servers.moment)
    reading.seen = count === servers?.count() ? moment && Option.getOrUndefined(moment) : undefined
    if (isQuiet && isCurrent && reading.manner === "changes") {
      const { gone, missing, stale } = compare(yield* truthOf(stand, reading), reading.reader.copy())
      if (gone.length + missing.length + stale.length > 0) {
        reading.trouble = `It has all, but missing ${missing.join()}; stale ${stale.join()}; gone ${gone.join()}`
      }
    }
    return { seen, isDone }
  })

  const untilRead = Effect.fnUntraced(function* (reading: Reading) {
    if (reading.beside !== undefined) yield* Fiber.await(reading.beside)
    reading.beside = undefined
  })

  const read = Effect.fnUntraced(function* (at: number, limit: number, isBeside: boolean, wait: number) {
    const reading = readings[at]
    if (reading === undefined || (stand.isSingle && writers.isOpen())) return "left out"
    yield* untilRead(reading)
    if (!isBeside || stand.isSingle) return (yield* page(reading, limit, true)).seen
    reading.beside = yield* Effect.forkChild(
      Effect.tap(page(reading, limit, false, wait), ({ seen }) =>
        Effect.sync(() => happened.push([`(that page of reader ${at})`, seen]))
      )
    )
    return ""
  })

  const befall = Effect.fnUntraced(function* (event: Event) {
    if (servers === undefined || !(yield* Effect.orDie(servers.befall(event)))) return "left out"
    if (/copy|standby/.test(event)) return ""
    yield* stand.reopen
    yield* writers.recover
    return ""
  })

  const choose = (reading: Reading, without?: Kind) => {
    if (reading.kinds === undefined) return
    reading.kinds = allKinds.filter((kind) => kind !== without)
    reading.reader.choose(reading.kinds)
  }

  /** What a reader does, unless it is reading. */
  const within = (at: number, work: (reading: Reading) => void) =>
    Effect.sync(() => {
      const reading = readings[at]
      const isReading = reading?.beside !== undefined && reading.beside.pollUnsafe() === undefined
      if (reading === undefined || isReading) return "left out"
      work(reading)
      return ""
    })

  const take: (step: Step) => Effect.Effect<string, SqlError, Scope.Scope> = Step.$match({
    Begin: ({ writer, ...options }) => writers.begin(writer, options),
    Commit: ({ writer }) => writers.commit(writer),
    Rollback: ({ writer }) => writers.rollback(writer),
    Savepoint: ({ writer }) => writers.savepoint(writer),
    RollbackTo: ({ writer }) => writers.rollbackTo(writer),
    Prepare: ({ writer }) => writers.prepare(writer),
    Finish: ({ writer, isCommit }) => writers.finish(writer, isCommit),
    Write: ({ writer, room: at, change }) => {
      const room = history.rooms[at]
      // Whoever reads would wait for a TRUNCATE that waits for a transaction.
      return room === undefined || (change._tag === "Truncate" && writers.isOpen())
        ? Effect.succeed("left out")
        : writers.write(writer, room, organizations, change)
    },
    Page: ({ reader, limit, isBeside, wait }) => read(reader, limit, isBeside, wait),
    Choose: ({ reader: at, without }) =>
      within(at, (reading) => choose(reading, without === undefined ? undefined : history.rooms[without]?.kind)),
    Save: ({ reader: at }) =>
      within(at, (reading) => {
        reading.reader.save()
        reading.saved = reading.seen
      }),
    Kill: ({ reader: at }) =>
      Effect.gen(function* () {
        const reading = readings[at]
        if (reading === undefined) return "left out"
        if (reading.beside !== undefined) yield* Fiber.interrupt(reading.beside)
        reading.beside = undefined
        reading.reader.restart()
        reading.seen = reading.saved
        // A reader that is started again reads what is configured now.
        if (reading.kinds !== undefined) reading.reader.choose(reading.kinds)
        return ""
      }),
    Pause: ({ millis }) => Effect.as(Effect.sleep(millis), ""),
    Befall: ({ event }) => befall(event)
  })

  for (const [at, step] of history.steps.entries()) {
    happened.push([`${at}. ${json(step)}`, yield* take(step)])
  }

  yield* writers.settle
  yield* stand.caughtUp

  const drain = Effect.fnUntraced(function* (reading: Reading, at: number) {
    yield* untilRead(reading)
    choose(reading)
    const limit = drainLimits[(history.number + at) % drainLimits.length] ?? 1000
    let isDone = false
    while (!isDone && reading.trouble === undefined) {
      const last = yield* page(reading, limit, false)
      isDone = last.isDone
      happened.push([`in the end, reader ${at} (${reading.manner}): page of ${limit}`, last.seen])
      if (reading.pages > endless) reading.trouble = `No end after ${endless} pages`
    }
  })
  yield* Effect.forEach(readings, drain, { concurrency: stand.isSingle ? 1 : "unbounded", discard: true })

  const outcomes = yield* Effect.forEach(readings, (reading, at) =>
    Effect.gen(function* () {
      const { manner, pages, reader, room, trouble } = reading
      const { gone, missing, stale } = compare(yield* truthOf(stand, reading), reader.copy())
      happened.push([
        `reader ${at} (${manner}, ${room.kind.table})`,
        `missing ${missing.join()}; stale ${stale.join("; ")}; gone ${gone.join()}${trouble === undefined ? "" : `; ${trouble}`}`
      ])
      const outcome: Outcome = {
        lost: missing.length + gone.length,
        stale: stale.length,
        pages,
        trouble
      }
      return outcome
    })
  )
  const heading = json({ ...history, steps: [] })
  const result: Played = {
    outcomes,
    story: () => [heading, ...happened.map(([what, seen]) => (seen === "" ? what : `${what} -> ${seen}`))].join("\n")
  }
  return result
}, Effect.scoped)
