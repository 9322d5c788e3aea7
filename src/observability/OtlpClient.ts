/**
 * The HTTP client of effect's exporters for a collector. They send each batch, wait for as long as it takes, and retry by
 * themselves. Here each export has a timeout for all its tries, the number under way is limited, and a response is read up
 * to a bound. The service never waits for any of it.
 */
import { Data, Duration, Effect, Option, Predicate, Redacted, References, Schedule, Semaphore, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "effect/http"
import type { Export, Signal } from "./OtlpConfig.ts"

/** Logs when the collector begins to fail, and when it responds again to every signal that had failed. */
export const makeHealth = () => {
  const failing = new Set<Signal>()
  return (signal: Signal, reason?: string) =>
    Effect.suspend(() => {
      const wasFailing = failing.size > 0
      if (reason === undefined) failing.delete(signal)
      else failing.add(signal)
      if (failing.size > 0 === wasFailing) return Effect.void
      const line = wasFailing
        ? Effect.logInfo("The OpenTelemetry collector responds again")
        : Effect.logWarning("The OpenTelemetry collector fails: what it should have is dropped")
      // Without the annotations of the request that was exported.
      return Effect.provideService(line, References.CurrentLogAnnotations, {
        signal,
        ...(reason !== undefined && { cause: reason })
      })
    })
}

class NotTaken extends Data.TaggedError("NotTaken")<{
  readonly reason: string
  /** The delay before a retry; undefined if a retry cannot help. */
  readonly retryAfter?: Duration.Duration
}> {}

/** The statuses after which the protocol allows a retry. */
const transient = [429, 502, 503, 504]

const codeOf = (error: unknown): string | undefined => {
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.hasProperty(error, "cause") ? codeOf(error.cause) : undefined
}

const notReached = (error: HttpClientError.HttpClientError) =>
  new NotTaken({ reason: codeOf(error.reason.cause) ?? "The connection failed", retryAfter: Duration.zero })

/** A piece has at most 64 KiB. A collector says a few words. */
const mostPieces = 4

const check = ({ headers, status, stream }: HttpClientResponse.HttpClientResponse) => {
  const { "retry-after": header = "" } = headers
  const retryAfter = Duration.seconds(/^\d{1,6}$/.test(header) ? Number(header) : 0)
  const reason = `status ${status}`
  return Effect.andThen(
    Effect.ignore(Stream.runDrain(Stream.take(stream, mostPieces))),
    status >= 200 && status < 300
      ? Effect.void
      : Effect.fail(new NotTaken(transient.includes(status) ? { reason, retryAfter } : { reason }))
  )
}

const timedOut = new NotTaken({ reason: "No response in time" })
const tooMany = new NotTaken({ reason: "Too slow: too many exports are under way" })

const backoff = Schedule.jittered(Schedule.exponential("500 millis"))

export interface Options extends Pick<Export, "timeout" | "url"> {
  readonly signal: Signal
  /** The most exports under way. */
  readonly atOnce: number
  readonly health: ReturnType<typeof makeHealth>
  /** Counts a try that failed. */
  readonly tryFailed: () => void
}

export const make = ({ atOnce, health, signal, timeout, tryFailed, url }: Options) =>
  Effect.map(HttpClient.HttpClient, (client) => {
    const permits = Semaphore.makeUnsafe(atOnce)
    // Without the headers and parameters of a request, which may be secrets. The exporters do not retry this kind.
    const { origin } = Redacted.value(url)
    const failure = (description: string) =>
      new HttpClientError.HttpClientError({
        reason: new HttpClientError.EncodeError({ request: HttpClientRequest.post(origin), description })
      })
    const send = (request: HttpClientRequest.HttpClientRequest) => {
      // The error of the last try says more than that the time is over.
      let last = timedOut
      return client.execute(request).pipe(
        Effect.mapError(notReached),
        Effect.flatMap(check),
        Effect.tapError((error) => {
          last = error
          tryFailed()
          return Effect.sleep(error.retryAfter ?? 0)
        }),
        Effect.retry({ while: ({ retryAfter }) => retryAfter !== undefined, schedule: backoff }),
        Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(last) })
      )
    }
    return HttpClient.make((request) =>
      permits
        .withPermitsIfAvailable(1)(send(request))
        .pipe(
          Effect.flatMap(Option.match({ onNone: () => Effect.fail(tooMany), onSome: () => health(signal) })),
          Effect.as(HttpClientResponse.fromWeb(request, new Response(null, { status: 200 }))),
          Effect.catch((error) => {
            if (error === timedOut || error === tooMany) tryFailed()
            return Effect.andThen(health(signal, error.reason), Effect.fail(failure(error.reason)))
          })
        )
    )
  })
