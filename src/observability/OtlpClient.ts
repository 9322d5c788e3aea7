/**
 * The HTTP client of effect's exporters for a collector. They send each batch, wait for as long as it takes, and retry by
 * themselves. Here each export has a timeout for all its tries, the number under way is limited, and a response is read up
 * to a bound. The service never waits for any of it.
 */
import { Effect, Option, Predicate, Redacted, Schedule, Semaphore, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
import type { Signal } from "./OtlpConfig.ts"
import * as Series from "./Series.ts"

const codeOf = (error: unknown): string | undefined => {
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.hasProperty(error, "cause") ? codeOf(error.cause) : undefined
}

const reasonOf = ({ reason }: HttpClientError.HttpClientError) =>
  reason._tag === "StatusCodeError" ? `status ${reason.response.status}` : (codeOf(reason) ?? "The connection failed")

/** The most exports of a signal under way. */
const atOnce = 4

/** A piece has at most 64 KiB. A collector says a few words. */
const mostPieces = 4

/** The protocol allows no retry after these statuses, unlike `retryTransient`. */
const isFinal = (error: unknown) =>
  HttpClientError.isHttpClientError(error) && [408, 500].includes(error.response?.status ?? 0)

const backoff = Schedule.exponential("500 millis").pipe(
  Schedule.jittered,
  Schedule.while(({ input }) => !isFinal(input))
)

export interface Options {
  readonly url: Redacted.Redacted<URL>
  /** The milliseconds that an export may take, with all its tries. */
  readonly timeout: number
}

export const make = Effect.fnUntraced(function* (signal: Signal, { timeout, url }: Options) {
  const client = yield* HttpClient.HttpClient
  const { counter } = yield* Series.current
  const failures = counter("practice_data_telemetry_export_failures_total", { signal })
  const permits = Semaphore.makeUnsafe(atOnce)
  let isFailing = false

  /** Logs when exports begin to fail, and when they work again. */
  const ended = (cause?: string) =>
    Effect.suspend(() => {
      if (cause !== undefined) failures.add()
      if (isFailing === (cause !== undefined)) return Effect.void
      isFailing = !isFailing
      const line = isFailing
        ? Effect.logWarning("The OpenTelemetry collector fails: what it should have is dropped")
        : Effect.logInfo("The OpenTelemetry collector responds again")
      return Effect.annotateLogs(line, { signal, cause })
    })

  // Without the headers and parameters of a request, which may be secrets. The exporters do not retry this kind.
  const failure = (description: string) =>
    new HttpClientError.HttpClientError({
      reason: new HttpClientError.EncodeError({
        request: HttpClientRequest.post(Redacted.value(url).origin),
        description
      })
    })

  return HttpClient.make((request) => {
    // The error of the last try says more than that the time is over.
    let reason = "No response in time"
    return client.pipe(
      HttpClient.tap(({ stream }) => Effect.ignore(Stream.runDrain(Stream.take(stream, mostPieces)))),
      HttpClient.filterStatusOk,
      HttpClient.tapError((error) => Effect.sync(() => void (reason = reasonOf(error)))),
      HttpClient.retryTransient({ retryOn: "errors-only", schedule: backoff }),
      ({ execute }) => Effect.timeout(execute(request), timeout),
      Effect.mapError(() => reason),
      permits.withPermitsIfAvailable(1),
      Effect.flatMap(Option.match({ onNone: () => Effect.fail("Too many exports under way"), onSome: Effect.succeed })),
      Effect.tap(() => ended()),
      Effect.tapError(ended),
      Effect.mapError(failure)
    )
  })
})
