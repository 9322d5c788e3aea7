/**
 * The access log: a line for each request, through the writer of the log. scripts/operations/README.md lists its fields.
 */
import { Clock, Effect, LogLevel } from "effect"
import { formats, type Format, isoTime } from "./LogLine.ts"
import type { Options } from "./Logging.ts"
import { LogWriter } from "./LogWriter.ts"
import { isProbe, type RequestFacts as Facts } from "./RequestFacts.ts"
import { withoutSecrets } from "./Secrets.ts"

/** Milliseconds, with as many decimals as are of use. */
const rounded = (milliseconds: number) => Math.round(milliseconds * 100) / 100

const lineOf = ({ begin, end, plain, text }: Format) => {
  const given = (name: string, value: string | undefined) =>
    value === undefined || value === "" ? "" : text(name, value)
  // What a sender says of itself, which was not looked at before.
  const claimed = (name: string, value: string | undefined) =>
    value === undefined ? "" : text(name, withoutSecrets(value))
  const spent = (name: string, value: number) => (value === 0 ? "" : plain(name, rounded(value)))
  return (facts: Facts, level: LogLevel.LogLevel, time: number) =>
    begin(time, level, "Request") +
    given("request_id", facts.id) +
    given("method", facts.method) +
    given("path", facts.path) +
    plain("status", facts.status) +
    plain("bytes", facts.bytes) +
    plain("ms", rounded(facts.duration)) +
    spent("database_ms", facts.database) +
    spent("wait_ms", facts.waited) +
    spent("poll_ms", facts.polled) +
    claimed("organization", facts.organization) +
    given("key", facts.keyPrefix) +
    (facts.rows === undefined ? "" : plain("rows", facts.rows)) +
    given("refusal", facts.refusal) +
    claimed("idempotency_key", facts.idempotencyKey) +
    given("task_id", facts.taskId) +
    given("outcome", facts.outcome) +
    given("user_agent", facts.userAgent) +
    given("client", facts.address) +
    (facts.trace === undefined ? "" : text("trace_id", facts.trace.traceId) + text("span_id", facts.trace.spanId)) +
    end
}

const printable = (text: string) => withoutSecrets(text).replace(/[^\x20-\x7e]/g, "?")

/** For a person, in a line. */
const pretty = (facts: Facts, level: LogLevel.LogLevel, time: number) => {
  const parts = [
    `[${isoTime(time).slice(11, 23)}]`,
    level.toUpperCase(),
    printable(facts.method),
    printable(facts.path),
    String(facts.status),
    `${rounded(facts.duration)} ms`,
    ...(facts.database > 0 ? [`(database ${rounded(facts.database)} ms)`] : []),
    `${facts.bytes} bytes`,
    ...(facts.rows === undefined ? [] : [`${facts.rows} rows`]),
    ...[facts.organization, facts.refusal, facts.outcome].flatMap((text) =>
      text === undefined ? [] : [printable(text)]
    ),
    printable(facts.id)
  ]
  return `${parts.join(" ")}\n`
}

/** An observer of requests that logs each of them once its response is there. */
export const make = Effect.fnUntraced(function* ({ format, level }: Options) {
  const clock = yield* Clock.Clock
  const { write } = yield* LogWriter
  const line = format === "pretty" ? pretty : lineOf(formats[format])
  return (facts: Facts) => {
    const own = isProbe(facts) ? "Debug" : "Info"
    if (LogLevel.isLessThan(own, level)) return
    write(line(facts, own, clock.currentTimeMillisUnsafe()), format === "pretty")
  }
})
