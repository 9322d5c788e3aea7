/**
 * What becomes known of a request while it is handled: for the access log, the metrics and the operators' page. The
 * outermost middleware makes it, what handles the request writes to it, and observers read it when the response is there.
 */
import { Clock, Context, Effect, type Tracer } from "effect"
import { withoutSecrets } from "./Secrets.ts"

/** Why a request was refused, other than for what it says. */
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

/** What is known of a request. Times are in milliseconds. Absent is what is not known, or does not apply. */
export interface RequestFacts {
  /** Its `x-request-id`: 1 to 128 visible ASCII characters. */
  readonly id: string
  readonly method: string
  /** The path that was asked, without its query: at most 256 characters, which may be anything. */
  readonly path: string
  /** The path where this service has it, otherwise `other`: one of a few. */
  readonly endpoint: string
  /** At most 256 characters, which may be anything. */
  readonly userAgent: string | undefined
  /** The address that the connection comes from: the client's, or its proxy's. */
  readonly address: string | undefined
  /** When it began, on the monotonic clock. */
  readonly started: number
  /** 499 for a client that left before the response was there. */
  status: number
  /** The length of the response's body, as it is sent. */
  bytes: number
  /** From the request to its response. */
  duration: number
  /** In which statements ran. */
  database: number
  /** In which statements waited for a connection. */
  waited: number
  /** In which the service waited for something to happen, since the client asked it to. */
  polled: number
  organization: string | undefined
  /** The first characters of the API key, as operators see it in lists; never more of it. */
  keyPrefix: string | undefined
  /** How many records the response has. */
  rows: number | undefined
  refusal: Refusal | undefined
  /** Of a delivery to the intake. */
  idempotencyKey: string | undefined
  taskId: string | undefined
  outcome: "scheduled" | "duplicate" | "key_reused" | "full" | "unavailable" | "unsigned" | undefined
  /** The span of a sampled request; the caller's trace where the request is not sampled. */
  trace: Tracer.AnySpan | undefined
}

/** The facts of the request that the current fiber handles; nothing in other fibers. */
export const CurrentRequest = Context.Reference<RequestFacts | undefined>(
  "practice-data/observability/CurrentRequest",
  {
    defaultValue: () => undefined
  }
)

/** Notes how many records the response of the current request has. */
export const found = (rows: number): Effect.Effect<void> =>
  Effect.map(CurrentRequest, (facts) => {
    if (facts !== undefined) facts.rows = rows
  })

/**
 * What looks at each request once its response is there. They are called one after the other, synchronously, with facts
 * that they must neither change nor keep. By default, none.
 */
export const RequestObservers = Context.Reference<ReadonlyArray<(facts: Readonly<RequestFacts>) => void>>(
  "practice-data/observability/RequestObservers",
  { defaultValue: () => [] }
)

const longest = 256

/** The monotonic clock, in milliseconds. */
export const now = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

/** Notes how long the current request waits for something to happen, since its client asked it to. */
export const polling = <A, E, R>(waiting: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.contextWith((context: Context.Context<R>) => {
    const facts = Context.get(context, CurrentRequest)
    if (facts === undefined) return waiting
    const clock = Context.get(context, Clock.Clock)
    const begun = now(clock)
    return Effect.onExit(waiting, () =>
      Effect.sync(() => {
        facts.polled += now(clock) - begun
      })
    )
  })

/** The path of a request, without its query. */
export const pathOf = (url: string): string => {
  const end = url.indexOf("?")
  return end === -1 ? url : url.slice(0, end)
}

const shortened = (text: string) => withoutSecrets(text.length <= longest ? text : text.slice(0, longest))

/** The facts of a request that has just begun. A key that a client has put where it does not belong is left out. */
export const make = (
  request: Pick<RequestFacts, "id" | "method" | "path" | "endpoint" | "userAgent" | "address" | "started">
): RequestFacts => ({
  id: withoutSecrets(request.id),
  method: request.method,
  path: request.path === request.endpoint ? request.path : shortened(request.path),
  endpoint: request.endpoint,
  userAgent: request.userAgent === undefined ? undefined : shortened(request.userAgent),
  address: request.address,
  started: request.started,
  status: 0,
  bytes: 0,
  duration: 0,
  database: 0,
  waited: 0,
  polled: 0,
  organization: undefined,
  keyPrefix: undefined,
  rows: undefined,
  refusal: undefined,
  idempotencyKey: undefined,
  taskId: undefined,
  outcome: undefined,
  trace: undefined
})
