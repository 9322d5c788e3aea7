/** Senders of hostile bodies in a process of their own, all at once. Some of them do not read what they are answered. */
import { fileURLToPath } from "node:url"
import { Schema } from "effect"
import * as Child from "../support/Child.ts"

/** Who sends what. */
export const Plan = Schema.Struct({
  port: Schema.Int,
  /** The name of a kind of body. */
  kind: Schema.String,
  seed: Schema.Int,
  /** How many send, read the answer, and send again, and how often. */
  readers: Schema.Int,
  times: Schema.Int,
  /** How many send two requests and do not read. */
  silent: Schema.Int,
  /** How long all of it may take, in milliseconds. */
  during: Schema.Int
})
export type Plan = typeof Plan.Type

/** What became of it. */
export const Report = Schema.Struct({
  /** The size of one request, in bytes. */
  requestBytes: Schema.Int,
  /** How many requests were written. */
  sent: Schema.Int,
  /** The status of each answer that was read; the connection may have been closed instead. */
  statuses: Schema.Array(Schema.Int),
  closed: Schema.Int,
  /** The size of the largest answer, in bytes. */
  answerBytes: Schema.Int,
  /** How many of those who read had no answer in time. */
  unanswered: Schema.Int
})
export type Report = typeof Report.Type

const module = fileURLToPath(new URL("sendersProcess.ts", import.meta.url))

/** Starts the senders. They are gone, and their connections closed, when the scope closes. */
export const start = (plan: Plan) => Child.start(module, { plan: Plan, report: Report }, plan, "last")
