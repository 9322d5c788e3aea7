/** Plays a history: takes its steps, lets all transactions end, lets every reader read on, and compares. */
import { Array, type Data, Effect, Fiber, Option, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { json } from "../../../test/support/Client.ts"
import { Change, type Event, type History, type Reader as Described, type Step } from "./History.ts"
import { compare, type Played } from "./outcome.ts"
import * as Reader from "./Reader.ts"
import { idOf, type Kind, ledgers, type Organizations, tables } from "./Room.ts"
import type { Refused } from "./Service.ts"
import type { Moment } from "./Servers.ts"
import type { Stand } from "./Stand.ts"
import { statementsOf } from "./statements.ts"
import * as Writers from "./Writers.ts"

/** How the copy of a reader differs from the tables. */
const differences = Effect.fnUntraced(function* ({ observer }: Stand, { organization, reader }: Reading) {
  const rows: ReadonlyArray<{ readonly id?: string; readonly record?: string }> = yield* observer.run(
    reader
      .kinds()
      .map(
        ({ resource, table }) => `select '${resource} ' || id as id, record from ${table} where organization_id = $1`
      )
      .join(" union all "),
    [organization]
  )
  return compare(new Map(rows.map(({ id = "", record = "" }) => [id, record])), reader.copy())
})

const keyOf = (organization: string) => `pda_sync_${organization}`

/** The organizations of a history with their keys and first records. */
const prepare = Effect.fnUntraced(function* ({ observer }: Stand, { rooms }: History, organizations: Organizations) {
  yield* observer.run(
    `insert into api_keys (organization_id, id, name, prefix, key_hash, last_used_on)
     select o, 'key', 'sync', 'pda_sync_', sha256(convert_to('pda_sync_' || o, 'UTF8')), (now() at time zone 'UTC')::date
     from unnest($1::text[]) o`,
    [organizations]
  )
  for (const room of rooms) {
    const ids = Array.makeBy(room.count, (number) => idOf(number + 1))
    const first = Change.Insert({ ids, stamp: "now()", onConflict: "fail" })
    for (const { params, text } of statementsOf(room, organizations, first)) yield* observer.run(text, params)
  }
})

// Small ones cost most of the time that a history takes.
const drainLimits = [1000, 7, 1000, 40, 3, 1000, 15, 2, 1000, 40, 7] as const

/** A reader that comes to no end within so many pages never does. */
const endless = 2000

interface Reading extends Described {
  readonly reader: Reader.Reader
  readonly organization: string
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
  const { servers } = stand
  const hasEvents = history.steps.some(({ _tag }) => _tag === "Befall")
  const happened: Array<readonly [what: string, seen: string]> = []
  const writers = Writers.make(stand, history, organizations)

  // Files that are copied have little in them.
  if (hasEvents) yield* stand.observer.run(`truncate removals, ${tables.join()}`)
  yield* prepare(stand, history, organizations)
  if (hasEvents) yield* stand.caughtUp
  const allKinds = [...Array.dedupe(history.rooms.map(({ kind }) => kind)), ...ledgers]
  const readings = history.readers.map((described): Reading => {
    const { isOfAll, room } = described
    const organization = organizations[room.organization]
    const reader = Reader.make({
      kinds: isOfAll ? allKinds : [room.kind],
      key: keyOf(organization),
      ask: stand.primary
    })
    const nothing = { seen: undefined, saved: undefined, pages: 0, trouble: undefined, beside: undefined }
    return { ...described, reader, organization, ...nothing }
  })

  /** Reads a page, and checks what the service says of it where nothing else happens meanwhile. */
  const page = Effect.fnUntraced(function* (reading: Reading, limit: number, isAlone: boolean, wait = 0) {
    if (reading.trouble !== undefined) return { seen: "left out", isDone: true }
    const isQuiet = isAlone && !writers.isWaiting()
    const count = servers?.count()
    const refuse = ({ message }: Refused) => {
      reading.trouble = message
      return Effect.succeed({ seen: message, isDone: true, isCurrent: false, isGone: false })
    }
    const read = Effect.catchTag(reading.reader.page(limit, wait), "Refused", refuse)
    const { isCurrent, isDone, isGone, seen } = yield* read
    reading.pages++
    if (isGone && (servers === undefined || (reading.seen && servers.has(reading.seen)))) {
      reading.trouble = "410 for a cursor whose changes are all there"
    }
    const moment = isGone || servers === undefined ? undefined : yield* Effect.option(servers.moment)
    reading.seen = count === servers?.count() ? moment && Option.getOrUndefined(moment) : undefined
    if (isQuiet && isCurrent) {
      const { lost, seen: found, stale } = yield* differences(stand, reading)
      if (lost + stale > 0) reading.trouble = `It has all, but ${found}`
    }
    return { seen, isDone }
  })

  const untilRead = Effect.fnUntraced(function* (reading: Reading) {
    if (reading.beside !== undefined) yield* Fiber.await(reading.beside)
    reading.beside = undefined
  })

  const read = Effect.fnUntraced(function* (step: Data.TaggedEnum.Value<Step, "Page">) {
    const { isBeside, limit, reader: at, wait } = step
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
    yield* Effect.forEach([stand.observer, ...stand.sessions], ({ again }) => again)
    yield* writers.recover
    return ""
  })

  const choose = (reading: Reading, without?: Kind) => {
    if (reading.isOfAll) reading.reader.choose(allKinds.filter((kind) => kind !== without))
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

  const kill = Effect.fnUntraced(function* (at: number) {
    const reading = readings[at]
    if (reading === undefined) return "left out"
    if (reading.beside !== undefined) yield* Fiber.interrupt(reading.beside)
    reading.beside = undefined
    reading.reader.restart()
    reading.seen = reading.saved
    return ""
  })

  const take = (step: Step): Effect.Effect<string, SqlError, Scope.Scope> => {
    switch (step._tag) {
      case "Page":
        return read(step)
      case "Choose":
        return within(step.reader, (reading) => choose(reading, history.rooms[step.without]?.kind))
      case "Save":
        return within(step.reader, (reading) => {
          reading.reader.save()
          reading.saved = reading.seen
        })
      case "Kill":
        return kill(step.reader)
      case "Pause":
        return Effect.as(Effect.sleep(step.millis), "")
      case "Befall":
        return befall(step.event)
      default:
        return writers.take(step)
    }
  }

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
      happened.push([`in the end, reader ${at}: page of ${limit}`, last.seen])
      if (reading.pages > endless) reading.trouble = `No end after ${endless} pages`
    }
  })
  yield* Effect.forEach(readings, drain, { concurrency: stand.isSingle ? 1 : "unbounded", discard: true })

  const outcomes = yield* Effect.forEach(
    readings,
    Effect.fnUntraced(function* (reading, at) {
      const { pages, room, trouble } = reading
      const { lost, seen, stale } = yield* differences(stand, reading)
      happened.push([`reader ${at} (${room.kind.table})`, trouble === undefined ? seen : `${seen}; ${trouble}`])
      return { lost, stale, pages, trouble }
    })
  )
  const heading = json({ ...history, steps: [] })
  const result: Played = {
    outcomes,
    story: () => [heading, ...happened.map(([what, seen]) => (seen === "" ? what : `${what} -> ${seen}`))].join("\n")
  }
  return result
}, Effect.scoped)
