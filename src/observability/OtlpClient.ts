/**
 * The client by which effect's exporters reach a collector. They send whatever has gathered, wait for as long as it takes,
 * and try again by themselves; here each export has its time, all tries included, only so many are under way, and of a
 * response no more is read than a collector has to say. Nothing that the service does waits for any of it.
 */
import { Data, Duration, Effect, Predicate, Redacted, References, Schedule, Stream } from "effect"
import { HttpClient, HttpClientError, HttpClientRequest, HttpClientResponse } from "effect/http"
import type { Export, Signal } from "./OtlpConfig.ts"

/** What is told of exports. */
export interface Health {
  /** A try failed. Another one may follow. */
  readonly tryFailed: (signal: Signal) => void
  readonly failed: (signal: Signal, reason: string) => Effect.Effect<void>
  readonly succeeded: (signal: Signal) => Effect.Effect<void>
}

/**
 * Logs when a collector no longer takes what it is sent, and when it does again: a line for each reason, and not for each
 * signal or export.
 *
 * @param count counts a try that failed
 */
export const makeHealth = (count: (signal: Signal) => void): Health => {
  const failing = new Map<Signal, string>()
  const isFailingFor = (reason: string | undefined) => [...failing.values()].some((each) => each === reason)
  return {
    tryFailed: count,
    failed: (signal, reason) =>
      Effect.suspend(() => {
        const isKnown = failing.has(signal) || isFailingFor(reason)
        if (!failing.has(signal)) failing.set(signal, reason)
        return isKnown
          ? Effect.void
          : Effect.logWarning("The OpenTelemetry collector fails: what it should have is dropped").pipe(
              Effect.provideService(References.CurrentLogAnnotations, { signal, cause: reason })
            )
      }),
    succeeded: (signal) =>
      Effect.suspend(() => {
        const reason = failing.get(signal)
        return failing.delete(signal) && !isFailingFor(reason)
          ? Effect.logInfo("The OpenTelemetry collector responds again").pipe(
              Effect.provideService(References.CurrentLogAnnotations, { signal })
            )
          : Effect.void
      })
  }
}

/** The collector did not take an export. */
class NotTaken extends Data.TaggedError("NotTaken")<{
  readonly reason: string
  /** Whether another try may succeed. */
  readonly isTransient: boolean
  readonly retryAfter?: Duration.Duration
}> {}

// The statuses that the protocol says to try again after.
const transient = [429, 502, 503, 504]

const retryAfterOf = (header: string | undefined) =>
  header !== undefined && /^\d{1,6}$/.test(header) ? { retryAfter: Duration.seconds(Number(header)) } : {}

const codeOf = (error: unknown): string | undefined => {
  if (!Predicate.isObject(error)) return undefined
  if (Predicate.hasProperty(error, "code") && Predicate.isString(error.code)) return error.code
  return Predicate.hasProperty(error, "cause") ? codeOf(error.cause) : undefined
}

const notReached = (error: HttpClientError.HttpClientError) =>
  new NotTaken({ reason: codeOf(error.reason.cause) ?? "The connection failed", isTransient: true })

/** A piece has at most 64 KiB. A collector says a few words. */
const mostPieces = 4

const check = (response: HttpClientResponse.HttpClientResponse) =>
  response.stream.pipe(
    Stream.take(mostPieces),
    Stream.runDrain,
    Effect.ignore,
    Effect.andThen(
      response.status >= 200 && response.status < 300
        ? Effect.void
        : Effect.fail(
            new NotTaken({
              reason: `status ${response.status}`,
              isTransient: transient.includes(response.status),
              ...retryAfterOf(response.headers["retry-after"])
            })
          )
    )
  )

const timedOut = new NotTaken({ reason: "No response in time", isTransient: false })
const tooMany = new NotTaken({ reason: "Too slow: too many exports are under way", isTransient: false })

const backoff = Schedule.jittered(Schedule.exponential("500 millis"))

export interface Options extends Pick<Export, "timeout" | "url"> {
  readonly signal: Signal
  /** How many exports may be under way at once. */
  readonly atOnce: number
  readonly health: Health
}

/** A client for the exports of one signal. */
export const make = ({ atOnce, health, signal, timeout, url }: Options) =>
  Effect.map(HttpClient.HttpClient, (client) => {
    let underWay = 0
    // Without the headers and parameters of a request, which may be secrets. And of a kind that nobody tries again.
    const { origin } = Redacted.value(url)
    const failure = (description: string) =>
      new HttpClientError.HttpClientError({
        reason: new HttpClientError.EncodeError({ request: HttpClientRequest.post(origin), description })
      })
    const send = (request: HttpClientRequest.HttpClientRequest) => {
      // What the last try met says more than that the time is over.
      let last = timedOut
      return client.execute(request).pipe(
        Effect.mapError(notReached),
        Effect.flatMap(check),
        Effect.tapError((error) => {
          last = error
          health.tryFailed(signal)
          return error.retryAfter === undefined ? Effect.void : Effect.sleep(error.retryAfter)
        }),
        Effect.retry({ while: ({ isTransient }) => isTransient, schedule: backoff }),
        Effect.timeoutOrElse({ duration: timeout, orElse: () => Effect.fail(last) })
      )
    }
    return HttpClient.make((request) =>
      Effect.suspend(() => {
        if (underWay >= atOnce) return Effect.fail(tooMany)
        underWay += 1
        return Effect.ensuring(
          send(request),
          Effect.sync(() => (underWay -= 1))
        )
      }).pipe(
        Effect.matchEffect({
          onSuccess: () =>
            Effect.as(
              health.succeeded(signal),
              HttpClientResponse.fromWeb(request, new Response(null, { status: 200 }))
            ),
          onFailure: (error) => {
            if (error === timedOut || error === tooMany) health.tryFailed(signal)
            const { reason } = error
            return Effect.andThen(health.failed(signal, reason), Effect.fail(failure(reason)))
          }
        })
      )
    )
  })
