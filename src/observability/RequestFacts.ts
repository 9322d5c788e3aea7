/**
 * The facts of a request: for the access log, the metrics, the trace and the operators' page. The outermost middleware
 * collects them, handlers note more, and observers get them with the response.
 */
import { Clock, Context, Effect, type Tracer } from "effect"
import { withoutSecrets } from "./Logging.ts"
import type { deliveries, refusals } from "./Metrics.ts"

/** Why a request was refused, other than for its content. */
export type Refusal = Exclude<(typeof refusals)[number], "invalid" | "bug">

const longest = 256

const shortened = (text: string) => withoutSecrets(text.length <= longest ? text : text.slice(0, longest))

/**
 * The account of one request. Undefined is what is not known, or does not apply. Texts of the client have at most 256
 * characters, and no API key that it sent in the wrong place. Times are in milliseconds.
 */
export class Account {
  /** Its `x-request-id`: 1 to 128 visible ASCII characters. */
  readonly id: string
  readonly method: string
  /** The requested path, without its query. */
  readonly path: string
  /** The path if this service has it, otherwise `other`. */
  readonly endpoint: string
  readonly userAgent: string | undefined
  /** The address of the client, or of its proxy. */
  readonly address: string | undefined
  /** 499 if the client left before the response. */
  status = 0
  /** The length of the body as it is sent. */
  bytes = 0
  /** From the request to its response. */
  duration = 0
  /** In statements. */
  database = 0
  /** While statements waited for a connection. */
  waited = 0
  /** While a request for changes waited for one, as its client chose. */
  polled = 0
  organization: string | undefined
  /** The first characters of the API key, as in lists of keys; never more. */
  keyPrefix: string | undefined
  /** The number of records in the response. */
  rows: number | undefined
  refusal: Refusal | undefined
  /** Of a delivery to the intake. */
  idempotencyKey: string | undefined
  taskId: string | undefined
  outcome: Exclude<(typeof deliveries)[number], "invalid"> | undefined
  /** The span of a sampled request. */
  trace: Tracer.AnySpan | undefined

  constructor(request: Pick<Account, "id" | "method" | "path" | "endpoint" | "userAgent" | "address">) {
    const { address, endpoint, id, method, path, userAgent } = request
    this.id = withoutSecrets(id)
    this.method = method
    this.path = path === endpoint ? path : shortened(path)
    this.endpoint = endpoint
    this.userAgent = userAgent === undefined ? undefined : shortened(userAgent)
    this.address = address
  }

  /** Takes facts of handlers. Times of polls add up; of any other fact, the last note counts. */
  readonly note = (noted: Noted): void => {
    const { polled } = this
    Object.assign(this, noted)
    if (noted.polled !== undefined) this.polled += polled
  }

  /** Adds the times of a statement. */
  addStatement(took: number, waited: number): void {
    this.database += took
    this.waited += waited
  }
}

type Noted = Partial<
  Pick<Account, "polled" | "organization" | "keyPrefix" | "rows" | "refusal" | "idempotencyKey" | "taskId" | "outcome">
>

/** The facts of a request with its response. */
export type RequestFacts = Readonly<Omit<Account, "note" | "addStatement">>

/** Takes notes of the request that the current fiber handles; outside of requests, a no-op. */
export const Note = Context.Reference<Account["note"]>("practice-data/observability/RequestFacts/Note", {
  defaultValue: () => () => {}
})

export const note = (noted: Noted): Effect.Effect<void> =>
  Effect.contextWith((context) => {
    Context.get(context, Note)(noted)
    return Effect.void
  })

/** Observers of requests, which must neither change nor keep the facts. */
export const RequestObservers = Context.Reference<ReadonlyArray<(facts: RequestFacts) => void>>(
  "practice-data/observability/RequestObservers",
  { defaultValue: () => [] }
)

/** The monotonic clock, in milliseconds. */
export const now = (clock: Clock.Clock) => Number(clock.monotonicTimeNanosUnsafe()) / 1_000_000

/** Notes the duration of an effect in which the current request waits because its client chose to. */
export const polling = <A, E, R>(waiting: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.clockWith((clock) => {
    const begun = now(clock)
    return Effect.onExit(waiting, () => note({ polled: now(clock) - begun }))
  })

/** The path of a URL without its query. */
export const pathOf = (url: string): string => {
  const end = url.indexOf("?")
  return end === -1 ? url : url.slice(0, end)
}
