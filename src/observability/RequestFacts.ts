/**
 * The facts of a request: for the access log, the metrics, the trace and the operators' page. The outermost middleware
 * collects them, handlers note more, and observers get them with the response.
 */
import { Clock, Context, Effect, Exit, LogLevel, type Tracer } from "effect"
import * as Time from "./Time.ts"
import { formats, lineHead, type LogOptions, LogWriter, withoutSecrets } from "./Logging.ts"
import { deliveries, refusals, type Series, statuses } from "./Metrics.ts"
import * as Tracing from "./Tracing.ts"

/** Why a request was refused, other than for its content. */
export type Refusal = Exclude<(typeof refusals)[number], "invalid" | "bug">

const longest = 256

const shortened = (text: string) => withoutSecrets(text.length <= longest ? text : text.slice(0, longest))

/** The facts of a request that its head tells. Texts of the client have at most 256 characters, and no API key. */
export interface Head {
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
}

/** The notes of a request while it is handled. Of each fact the last one counts; times of statements add up. */
export interface Notes {
  organization?: string | undefined
  /** The first characters of the API key, as in lists of keys; never more. */
  keyPrefix?: string | undefined
  /** The number of records in the response. */
  rows?: number | undefined
  refusal?: Refusal | undefined
  /** Only for a delivery to the intake. */
  idempotencyKey?: string | undefined
  taskId?: string | undefined
  outcome?: Exclude<(typeof deliveries)[number], "invalid"> | undefined
  /** Milliseconds in statements. */
  database: number
  /** Milliseconds while statements waited for a connection. */
  waited: number
}

/** The facts of a request with its response. Facts that are unknown, or do not apply, are undefined. */
export interface RequestFacts extends Head, Readonly<Notes> {
  /** 499 if the client left before the response. */
  readonly status: number
  /** The length of the body as it is sent. */
  readonly bytes: number
  /** Milliseconds from the request to its response. */
  readonly duration: number
  /** The span of a sampled request. */
  readonly trace: Tracer.Span | undefined
}

/** The head of a request without secrets and long texts. */
export const describeHead = (head: Head): Head => ({
  ...head,
  id: withoutSecrets(head.id),
  path: head.path === head.endpoint ? head.path : shortened(head.path),
  userAgent: head.userAgent && shortened(head.userAgent)
})

/** The notes of the request that the current fiber handles; undefined outside of requests. */
export const CurrentNotes = Context.Reference<Notes | undefined>(
  "practice-data/observability/RequestFacts/CurrentNotes",
  { defaultValue: () => undefined }
)

/** Notes facts of the current request. */
export const note = (noted: Partial<Notes>): Effect.Effect<void> =>
  Effect.contextWith((context) => {
    const notes = Context.get(context, CurrentNotes)
    if (notes !== undefined) Object.assign(notes, noted)
    return Effect.void
  })

/** Adds a statement of a request, with its times in milliseconds. */
export const noteStatement = (notes: Notes, waited: number, took: number) => {
  notes.waited += waited
  notes.database += took
}

/** Runs background statements of a request, which are not among its facts. */
export const unnoted = Effect.provideService(CurrentNotes, undefined)

/** Observers of requests, which must neither change nor keep the facts. */
export const RequestObservers = Context.Reference<ReadonlyArray<(facts: RequestFacts) => void>>(
  "practice-data/observability/RequestObservers",
  { defaultValue: () => [] }
)

/** True for probes: they are many, and their lines and traces say nothing new. */
const isProbe = ({ endpoint }: Head) => endpoint.startsWith("/api/v1/health")

/** Milliseconds, with as many decimals as are of use. */
const rounded = (milliseconds: number) => Math.round(milliseconds * 100) / 100

const spent = (milliseconds: number) => (milliseconds === 0 ? undefined : rounded(milliseconds))

const given = (text: string | undefined) => (text === "" ? undefined : text)

/** The sender chooses it: it may hold a secret. */
const claimed = (text: string | undefined) => (text === undefined ? undefined : withoutSecrets(text))

/** An observer that logs each request. src/operations/README.md lists the fields. */
export const accessLog = Effect.fnUntraced(function* ({ format, level }: LogOptions) {
  const clock = yield* Clock.Clock
  const { write } = yield* LogWriter
  return (facts: RequestFacts) => {
    const own = isProbe(facts) ? "Debug" : "Info"
    if (LogLevel.isLessThan(own, level)) return
    const line = formats[format]({
      ...lineHead(Time.wallMillis(clock), own, "Request"),
      request_id: given(facts.id),
      method: given(facts.method),
      path: given(facts.path),
      status: facts.status,
      bytes: facts.bytes,
      ms: rounded(facts.duration),
      database_ms: spent(facts.database),
      wait_ms: spent(facts.waited),
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

type Status = (typeof statuses)[number]
type Refused = (typeof refusals)[number]
type Delivery = (typeof deliveries)[number]

interface Counting {
  /** The paths that are served here. Their counters are there, at 0, from the start. */
  readonly endpoints: Iterable<string>
  /** The path of the intake, where that is served. */
  readonly intake?: string | undefined
}

/** The class of a status. No response is a redirect. */
const statusClass = (status: number): Status =>
  status === 499 ? "499" : status >= 500 ? "5xx" : status >= 400 ? "4xx" : "2xx"

/** The reason of a refusal that nothing noted. 404 and 410 are answers; a refusal with another status notes its reason. */
const reasons: Readonly<Record<number, Refused>> = {
  400: "invalid",
  401: "key",
  405: "invalid",
  415: "invalid",
  422: "invalid",
  500: "bug",
  503: "outage"
}

const deliveryOutcome = ({ outcome, status }: RequestFacts): Delivery | undefined => {
  if (outcome !== undefined) return outcome
  if (status === 503) return "unavailable"
  if (status === 401) return "unsigned"
  return status >= 400 && status < 499 ? "invalid" : undefined
}

/** Makes a value once for a key. */
const memoized = <Key, A>(make: (key: Key) => A) => {
  const made = new Map<Key, A>()
  return (key: Key): A => {
    const value = made.get(key) ?? make(key)
    made.set(key, value)
    return value
  }
}

/** An observer that counts requests. */
export const counting = ({ counter, histogram }: Series, { endpoints, intake }: Counting) => {
  const requests = memoized((endpoint: string) =>
    memoized((status: Status) => counter("practice_data_http_requests_total", { endpoint, status }))
  )
  const duration = memoized((endpoint: string) =>
    histogram("practice_data_http_request_duration_seconds", { endpoint })
  )
  const refused = memoized((reason: Refused) => counter("practice_data_http_requests_refused_total", { reason }))
  const delivered = memoized((outcome: Delivery) => counter("practice_data_deliveries_total", { outcome }))

  // At 0 from the start: an alert sees no increase of a counter that begins at 1.
  for (const endpoint of [...endpoints, "other"]) statuses.forEach(requests(endpoint))
  refusals.forEach(refused)
  if (intake !== undefined) deliveries.forEach(delivered)

  return (facts: RequestFacts) => {
    const { endpoint } = facts
    requests(endpoint)(statusClass(facts.status)).add()
    duration(endpoint).observe(facts.duration / 1000)
    const reason = facts.refusal ?? reasons[facts.status]
    if (reason !== undefined) refused(reason).add()
    const delivery = endpoint === intake && facts.method === "POST" ? deliveryOutcome(facts) : undefined
    if (delivery !== undefined) delivered(delivery).add()
  }
}

/** Begins the span of a request, which continues the trace of its caller; undefined where it is not sampled. */
export const startSpan = (
  context: Context.Context<never>,
  traceparent: string | undefined,
  head: Head
): Tracer.Span | undefined => {
  // Most processes make none.
  if (Context.get(context, Tracing.Traces) === undefined || isProbe(head)) return undefined
  const name = head.endpoint === "other" ? head.method : `${head.method} ${head.endpoint}`
  return Tracing.start(context, name, "server", Tracing.parseTraceParent(traceparent))
}

/** Ends the span of a request that has its response. Its headers and its query may hold secrets. */
export const endSpan = (context: Context.Context<never>, span: Tracer.Span, facts: RequestFacts) => {
  const attributes = {
    "http.request.method": facts.method,
    "url.scheme": "http",
    "url.path": facts.path,
    "http.route": facts.endpoint === "other" ? undefined : facts.endpoint,
    "http.response.status_code": facts.status,
    "http.response.body.size": facts.bytes,
    "client.address": facts.address,
    "user_agent.original": facts.userAgent,
    "practice_data.request_id": facts.id,
    "practice_data.organization": facts.organization,
    "practice_data.rows": facts.rows,
    "practice_data.refusal": facts.refusal,
    "practice_data.task_id": facts.taskId,
    "practice_data.outcome": facts.outcome,
    // Any other response is an answer.
    [Tracing.errorType]: facts.status >= 500 ? String(facts.status) : undefined
  }
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined) span.attribute(key, value)
  }
  span.end(Tracing.now(context), Exit.void)
}
