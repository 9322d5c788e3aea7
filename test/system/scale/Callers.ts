/** Callers in a process of their own: each asks, waits for the answer, notes how long that took, and asks again. */
import { fileURLToPath } from "node:url"
import { Array, Effect, Order, Schema } from "effect"
import * as Child from "./Child.ts"

const Request = Schema.Struct({
  method: Schema.optionalKey(Schema.String),
  path: Schema.String,
  headers: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)),
  body: Schema.optionalKey(Schema.String)
})

/** What the callers do. */
export const Plan = Schema.Struct({
  /** Where to connect: the first that does not refuse, beginning with the one that did not refuse last time. */
  ports: Schema.NonEmptyArray(Schema.Int),
  /** Asked in turn. */
  requests: Schema.NonEmptyArray(Request),
  callers: Schema.Int,
  /** How many requests there are in all, or no end until they are told to stop. */
  total: Schema.optionalKey(Schema.Int),
  /** How long all of it may take, in milliseconds. */
  during: Schema.optionalKey(Schema.Int),
  /** The pause of a caller between an answer and the next request, in milliseconds. */
  pause: Schema.optionalKey(Schema.Int),
  /** After how many milliseconds without an answer a caller hangs up. */
  patience: Schema.Int,
  /** Whether a connection is used again. */
  keepAlive: Schema.Boolean
})
export type Plan = typeof Plan.Type

/**
 * No status: the caller hung up, the connection was lost with the request in flight, nothing listened, or the caller was
 * told to stop before the answer.
 */
export const noAnswer = { hung: 0, lost: 1, refused: 2, unfinished: 3 } as const

const Sample = Schema.Struct({
  /** When it was asked, in milliseconds of the system's clock. */
  at: Schema.Finite,
  /** How long the answer took, in milliseconds. */
  took: Schema.Finite,
  /** Of HTTP, or one of {@link noAnswer}. */
  status: Schema.Int,
  /** Which of the requests it was. */
  request: Schema.Int
})
export type Sample = typeof Sample.Type

/** What became of every request, in the order of their ends. */
export const Report = Schema.Array(Sample)
export type Report = typeof Report.Type

const module = fileURLToPath(new URL("callersProcess.ts", import.meta.url))

/** Starts callers. They are gone when the scope closes. */
export const start = (plan: Plan, rank: Child.Rank = "last") =>
  Child.start(module, { plan: Plan, report: Report }, plan, rank)

/** Starts one caller who measures what others do to it: it asks every few milliseconds, and goes first. */
export const startNeighbour = (
  port: number,
  requests: Plan["requests"],
  { patience = 30_000, pause = 5, callers = 1 } = {}
) => start({ ports: [port], requests, callers, pause, patience, keepAlive: true }, "first")

/** Lets callers do all of their plan. */
export const run = (plan: Plan) => Effect.scoped(Effect.flatMap(start(plan), ({ report }) => report))

/** The longest of the times, or 0. */
export const longest = (report: Report) => Array.reduce(report, 0, (most, { took }) => Math.max(most, took))

/** The middle of the times, or 0. */
export const median = (report: Report) => {
  const sorted = Array.sort(
    report.map(({ took }) => took),
    Order.Number
  )
  return sorted[Math.floor(sorted.length / 2)] ?? 0
}

/** Those of some statuses. */
export const having = (report: Report, is: (status: number) => boolean) => report.filter(({ status }) => is(status))

/** Whether a status says that all is well. */
export const isGood = (status: number) => status >= 200 && status < 300

/** Those that did not come to what was expected. Of one that was not finished, nobody knows. */
export const unlike = (report: Report, isExpected: (status: number) => boolean) =>
  having(report, (status) => status !== noAnswer.unfinished && !isExpected(status))

const names = new Map<number, string>(Object.entries(noAnswer).map(([name, status]) => [status, name]))

const nameOf = (status: number) => names.get(status) ?? String(status)

/** How many there are of each status, in words. */
export const tally = (report: Report) =>
  Object.entries(Array.groupBy(report, ({ status }) => nameOf(status)))
    .map(([name, { length }]) => `${length} x ${name}`)
    .join(", ")
