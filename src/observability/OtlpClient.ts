/**
 * The HTTP client of effect's exporters for a collector. They send each batch, wait for as long as it takes, and retry by
 * themselves. Here each export has a timeout for all its tries, the number under way is limited, and a response is read up
 * to a bound. The service never waits for any of it.
 */
import { Effect, Option, Predicate, Redacted, References, Schedule, Semaphore, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest } from "effect/http"
import type { Export, Signal } from "./OtlpConfig.ts"

/** Logs when the collector begins to fail, and when it responds again to every signal that had failed. */
export const makeHealth = () => {
  const failing = new Set<Signal>()
  return (signal: Signal, cause?: string) =>
    Effect.suspend(() => {
      const wasFailing = failing.size > 0
      if (cause === undefined) failing.delete(signal)
      else failing.add(signal)
      if (failing.size > 0 === wasFailing) return Effect.void
      const line = wasFailing
        ? Effect.logInfo("The OpenTelemetry collector responds again")
        : Effect.logWarning("The OpenTelemetry collector fails: what it should have is dropped")
      // Without the annotations of the request that was exported.
      return Effect.provideService(line, References.CurrentLogAnnotations, {
        signal,
        ...(cause !== undefined && { cause })
      })
    })
}

const codeOf = (error: unknown): string | undefined => {
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.hasProperty(error, "cause") ? codeOf(error.cause) : undefined
}

const reasonOf = ({ reason }: HttpClientError.HttpClientError) =>
  reason._tag === "StatusCodeError" ? `status ${reason.response.status}` : (codeOf(reason) ?? "The connection failed")

/** A piece has at most 64 KiB. A collector says a few words. */
const mostPieces = 4

/** The protocol allows no retry after these statuses, unlike `retryTransient`. */
const isFinal = (error: unknown) =>
  HttpClientError.isHttpClientError(error) && [408, 500].includes(error.response?.status ?? 0)

const backoff = Schedule.exponential("500 millis").pipe(
  Schedule.jittered,
  Schedule.while(({ input }) => !isFinal(input))
)

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
    const fail = (reason: string) => Effect.andThen(Effect.sync(tryFailed), Effect.fail(reason))
    const send = (request: HttpClientRequest.HttpClientRequest) => {
      // The error of the last try says more than that the time is over.
      let last: string | undefined
      const trying = client.pipe(
        HttpClient.tap(({ stream }) => Effect.ignore(Stream.runDrain(Stream.take(stream, mostPieces)))),
        HttpClient.filterStatusOk,
        HttpClient.tapError((error) =>
          Effect.sync(() => {
            last = reasonOf(error)
            tryFailed()
          })
        ),
        HttpClient.retryTransient({ retryOn: "errors-only", schedule: backoff })
      )
      return trying.execute(request).pipe(
        Effect.mapError(reasonOf),
        Effect.timeoutOrElse({
          duration: timeout,
          orElse: () => (last === undefined ? fail("No response in time") : Effect.fail(last))
        })
      )
    }
    // Without the headers and parameters of a request, which may be secrets. The exporters do not retry this kind.
    const failure = (description: string) =>
      new HttpClientError.HttpClientError({
        reason: new HttpClientError.EncodeError({
          request: HttpClientRequest.post(Redacted.value(url).origin),
          description
        })
      })
    return HttpClient.make((request) =>
      permits
        .withPermitsIfAvailable(1)(send(request))
        .pipe(
          Effect.flatMap(
            Option.match({ onNone: () => fail("Too slow: too many exports are under way"), onSome: Effect.succeed })
          ),
          Effect.tap(() => health(signal)),
          Effect.catch((reason) => Effect.andThen(health(signal, reason), Effect.fail(failure(reason))))
        )
    )
  })
