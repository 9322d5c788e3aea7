/**
 * The facts of a request: for the access log, the metrics, the trace and the operators' page. The outermost middleware
 * collects them, handlers note more, and observers get them with the response.
 */
import { Clock, Context, Effect, type Tracer, type Types } from "effect"
import { withoutSecrets } from "./Logging.ts"

/** Why a request was refused, other than for its content. */
export type Refusal =
  | "key"
  | "signature"
  | "limit"
  | "load"
  | "outage"
  | "processor"
  | "too_large"
  | "timeout"
  | "protocol"

/** Facts that handlers note. Times are in milliseconds, and add up; of any other fact, the last note counts. */
export interface Noted {
  readonly organization?: string | undefined
  /** The first characters of the API key, as in lists of keys; never more. */
  readonly keyPrefix?: string | undefined
  /** The number of records in the response. */
  readonly rows?: number
  readonly refusal?: Refusal
  /** Of a delivery to the intake. */
  readonly idempotencyKey?: string
  readonly taskId?: string
  readonly outcome?: "scheduled" | "duplicate" | "key_reused" | "full" | "unavailable" | "unsigned"
  /** Time in statements. */
  readonly database?: number
  /** Time in which statements waited for a connection. */
  readonly waited?: number
  /** Time in which a request for changes waited for one, as its client chose. */
  readonly polled?: number
}

/** The facts of a request. Absent is what is not known, or does not apply. Times are in milliseconds. */
export interface RequestFacts extends Omit<Noted, "refusal"> {
  /** Its `x-request-id`: 1 to 128 visible ASCII characters. */
  readonly id: string
  readonly method: string
  /** The requested path, without its query: any text of at most 256 characters. */
  readonly path: string
  /** The path if this service has it, otherwise `other`. */
  readonly endpoint: string
  /** Any text of at most 256 characters. */
  readonly userAgent: string | undefined
  /** The address of the client, or of its proxy. */
  readonly address: string | undefined
  /** 499 if the client left before the response. */
  readonly status: number
  /** The length of the response's body, as it is sent. */
  readonly bytes: number
  /** From the request to its response. */
  readonly duration: number
  readonly database: number
  readonly waited: number
  readonly polled: number
  readonly refusal: Refusal | undefined
  /** The span of a sampled request. */
  readonly trace: Tracer.AnySpan | undefined
}

/** Facts that are still being collected. */
export type Collected = Types.Mutable<RequestFacts>

/** Takes notes of the request that the current fiber handles; outside of requests, a no-op. */
export const Note = Context.Reference<(noted: Noted) => void>("practice-data/observability/RequestFacts/Note", {
  defaultValue: () => () => {}
})

/** Notes facts of the current request. */
export const note = (noted: Noted): Effect.Effect<void> => Effect.map(Note, (write) => write(noted))

/** Writes notes to the facts of a request. */
export const noteIn = (facts: Collected) => (noted: Noted) => {
  const { database = 0, polled = 0, waited = 0 } = noted
  Object.assign(facts, noted, {
    database: facts.database + database,
    waited: facts.waited + waited,
    polled: facts.polled + polled
  })
}

/**
 * Observers of requests. They are called one after the other, synchronously, with facts that they must neither change nor
 * keep. By default, none.
 */
export const RequestObservers = Context.Reference<ReadonlyArray<(facts: RequestFacts) => void>>(
  "practice-data/observability/RequestObservers",
  { defaultValue: () => [] }
)

/** True of probes: there are many, and their lines and traces would say nothing new. */
export const isProbe = ({ endpoint }: RequestFacts) => endpoint.startsWith("/api/v1/health")

const longest = 256

/** The monotonic clock, in milliseconds. */
export const now = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

/** Notes the duration of an effect in which the current request waits because its client chose to. */
export const polling = <A, E, R>(waiting: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const clock = Context.get(context, Clock.Clock)
    const begun = now(clock)
    return Effect.onExit(waiting, () => note({ polled: now(clock) - begun }))
  })

/** The path of a request, without its query. */
export const pathOf = (url: string): string => {
  const end = url.indexOf("?")
  return end === -1 ? url : url.slice(0, end)
}

const shortened = (text: string) => withoutSecrets(text.length <= longest ? text : text.slice(0, longest))

/** The facts of a request that has just begun. An API key that a client sent in the wrong place is left out. */
export const make = (
  request: Pick<RequestFacts, "id" | "method" | "path" | "endpoint" | "userAgent" | "address">
): Collected => ({
  id: withoutSecrets(request.id),
  method: request.method,
  path: request.path === request.endpoint ? request.path : shortened(request.path),
  endpoint: request.endpoint,
  userAgent: request.userAgent === undefined ? undefined : shortened(request.userAgent),
  address: request.address,
  status: 0,
  bytes: 0,
  duration: 0,
  database: 0,
  waited: 0,
  polled: 0,
  refusal: undefined,
  trace: undefined
})
