/** The access log: a line for each request. src/operations/README.md lists its fields. */
import { Clock, Effect, LogLevel } from "effect"
import { formats, headOf, type Options, withoutSecrets } from "./Logging.ts"
import { LogWriter } from "./LogWriter.ts"
import { isProbe, type RequestFacts } from "./RequestFacts.ts"

/** Milliseconds, with as many decimals as are of use. */
const rounded = (milliseconds: number) => Math.round(milliseconds * 100) / 100

const spent = (milliseconds: number) => (milliseconds === 0 ? undefined : rounded(milliseconds))

const given = (text: string | undefined) => (text === "" ? undefined : text)

/** A sender's own word, which may be a secret. */
const claimed = (text: string | undefined) => (text === undefined ? undefined : withoutSecrets(text))

/** An observer of requests that logs each of them. */
export const make = Effect.fnUntraced(function* ({ format, level }: Options) {
  const clock = yield* Clock.Clock
  const { write } = yield* LogWriter
  const lineOf = formats[format]
  return (facts: RequestFacts) => {
    const own = isProbe(facts) ? "Debug" : "Info"
    if (LogLevel.isLessThan(own, level)) return
    const line = lineOf({
      ...headOf(clock.currentTimeMillisUnsafe(), own, "Request"),
      request_id: given(facts.id),
      method: given(facts.method),
      path: given(facts.path),
      status: facts.status,
      bytes: facts.bytes,
      ms: rounded(facts.duration),
      database_ms: spent(facts.database),
      wait_ms: spent(facts.waited),
      poll_ms: spent(facts.polled),
      organization: claimed(facts.organization),
      key: facts.keyPrefix,
      rows: facts.rows,
      refusal: facts.refusal,
      idempotency_key: claimed(facts.idempotencyKey),
      task_id: facts.taskId,
      outcome: facts.outcome,
      user_agent: given(facts.userAgent),
      client: facts.address,
      trace_id: facts.trace?.traceId,
      span_id: facts.trace?.spanId
    })
    write(line, format === "pretty")
  }
})
