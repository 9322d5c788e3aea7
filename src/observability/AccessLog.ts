/** The access log: a line for each request. src/operations/README.md lists its fields. */
import { Clock, Effect, LogLevel } from "effect"
import { type Format, formats, type Options, withoutSecrets } from "./Logging.ts"
import { LogWriter } from "./LogWriter.ts"
import { isProbe, type RequestFacts } from "./RequestFacts.ts"

/** Milliseconds, with as many decimals as are of use. */
const rounded = (milliseconds: number) => Math.round(milliseconds * 100) / 100

const lineOf = ({ begin, end, plain, text }: Format) => {
  const given = (name: string, value: string | undefined) =>
    value === undefined || value === "" ? "" : text(name, value)
  // A sender's own word, which may be a secret.
  const claimed = (name: string, value: string | undefined) =>
    value === undefined ? "" : text(name, withoutSecrets(value))
  const spent = (name: string, value: number) => (value === 0 ? "" : plain(name, rounded(value)))
  return (facts: RequestFacts, level: LogLevel.LogLevel, time: number) =>
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
    given("trace_id", facts.trace?.traceId) +
    given("span_id", facts.trace?.spanId) +
    end
}

/** An observer of requests that logs each of them. */
export const make = Effect.fnUntraced(function* ({ format, level }: Options) {
  const clock = yield* Clock.Clock
  const { write } = yield* LogWriter
  const line = lineOf(formats[format])
  return (facts: RequestFacts) => {
    const own = isProbe(facts) ? "Debug" : "Info"
    if (LogLevel.isLessThan(own, level)) return
    write(line(facts, own, clock.currentTimeMillisUnsafe()), format === "pretty")
  }
})
