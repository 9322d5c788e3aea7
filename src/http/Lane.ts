/**
 * The lane: answers small, valid reads in front of the router, in one fiber each, by the handlers of their endpoints. Any
 * other request goes on to the router, with its body as if it had just come. The response, the order of its headers and the
 * facts of the request are the same either way; a single record takes about half of the router's CPU time.
 */
import { isUtf8 } from "node:buffer"
import type { ServerResponse } from "node:http"
import { Clock, Context, Effect, Exit, type Fiber, Layer } from "effect"
import type { HttpServerResponse } from "effect/http"
import * as RequestFacts from "../observability/RequestFacts.ts"
import * as Series from "../observability/Series.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Time from "../process/Time.ts"
import * as Exchange from "./Exchange.ts"
import { isJson } from "./JsonBodyServer.ts"
import { mayRepeat } from "./JsonPruning.ts"
import { uncounted } from "./LargeBodies.ts"
import { Listener } from "./Listener.ts"
import { unexpectedErrors } from "./Middleware.ts"
import { requestIdOf } from "./Refusals.ts"
import { identify, type ServedRequest, wasRefused } from "./ServedRequest.ts"

/** The response to a payload for the holder of an API key; undefined for one that is left to the router. */
export type Read = (payload: unknown, key: string) => Effect.Effect<HttpServerResponse.HttpServerResponse> | undefined

export interface Options {
  /** By path. */
  readonly reads: ReadonlyMap<string, Read>
  /** The form of the API keys that requests of the lane have. */
  readonly isKey: RegExp
}

/** The longest body, in bytes: no memory is counted for it. */
const longestBody = uncounted

/** Milliseconds in which a body has to come. The router looks the key up before a slower one, which may never end. */
const patience = 500

const bearer = /^Bearer ([\x21-\x7e]+)$/i

/** The API key of a request whose head the lane can answer. */
const keyOf = ({ headers, method }: ServedRequest): string | undefined => {
  const { authorization = "", "content-length": length = "" } = headers
  const isPlain =
    method === "POST" &&
    isJson(headers["content-type"]) &&
    Number(length) <= longestBody &&
    Number(length) > 0 &&
    headers["content-encoding"] === undefined &&
    headers["transfer-encoding"] === undefined &&
    headers.upgrade === undefined
  return isPlain ? bearer.exec(authorization)?.[1] : undefined
}

const decoder = new TextDecoder()

/** The value of a body; undefined for one that may be no JSON, or may have a name twice. */
const parse = (body: Uint8Array): unknown => {
  if (!isUtf8(body)) return undefined
  const text = decoder.decode(body)
  if (mayRepeat(text)) return undefined
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The context of all requests of the lane. */
interface Shared {
  readonly context: Context.Context<never>
  readonly clock: Clock.Clock
  readonly observers: typeof RequestFacts.RequestObservers.Service
  readonly answered: { readonly add: () => void }
}

/** A request of the lane, from its head to its response. */
class LaneRequest {
  readonly #shared: Shared
  readonly #read: Read
  readonly #key: string
  readonly #request: ServedRequest
  readonly #response: ServerResponse
  readonly #pass: () => void
  readonly #id: string
  readonly #facts: RequestFacts.Account
  readonly #started: number
  #slow: NodeJS.Timeout | undefined
  #fiber: Fiber.Fiber<void> | undefined
  #isOver = false

  constructor(
    shared: Shared,
    read: Read,
    key: string,
    path: string,
    request: ServedRequest,
    response: ServerResponse,
    pass: () => void
  ) {
    this.#shared = shared
    this.#read = read
    this.#key = key
    this.#request = request
    this.#response = response
    this.#pass = pass
    this.#started = Time.monotonicOf(shared.clock)
    this.#id = requestIdOf(request.headers["x-request-id"])
    this.#facts = new RequestFacts.Account({
      id: this.#id,
      method: "POST",
      path,
      endpoint: path,
      userAgent: request.headers["user-agent"],
      address: request.socket.remoteAddress
    })
  }

  start() {
    this.#response.once("close", () => this.#close())
    // oxlint-disable-next-line effecttsgo/global-timers -- it runs in no effect
    this.#slow = setTimeout(() => {
      if (!wasRefused(this.#request)) this.#passOn()
    }, patience)
    this.#request.whole((body) => this.#answer(body))
  }

  #passOn() {
    this.#isOver = true
    this.#pass()
  }

  #answer(body: Uint8Array) {
    clearTimeout(this.#slow)
    if (this.#isOver) return
    const { context } = this.#shared
    const payload = parse(body)
    const answer = payload === undefined ? undefined : this.#read(payload, this.#key)
    if (answer === undefined) return this.#passOn()
    this.#facts.trace = RequestFacts.startSpan(context, this.#request.headers["traceparent"], this.#facts)
    const own = Exchange.contextOf(context, this.#facts, this.#id)
    const traced = Tracing.within(this.#facts.trace, unexpectedErrors(answer))
    this.#fiber = Effect.runForkWith(own)(Effect.map(traced, (response) => this.#send(response)))
    this.#fiber.addObserver((exit) => {
      if (Exit.isFailure(exit)) this.#response.destroy()
    })
  }

  #send(answer: HttpServerResponse.HttpServerResponse) {
    this.#isOver = true
    this.#shared.answered.add()
    const { headers, response } = Exchange.completed(answer, "POST", this.#request.headers, this.#id)
    const { body, status } = response
    this.#request.consume()
    this.#response.writeHead(status, headers)
    // A text, which most errors are, is sent together with the headers.
    this.#response.end(body._tag === "Uint8Array" ? (body.text ?? body.body) : undefined)
    this.#conclude(response)
  }

  #conclude(answer: HttpServerResponse.HttpServerResponse | undefined) {
    const { clock, context, observers } = this.#shared
    this.#facts.duration = Time.monotonicOf(clock) - this.#started
    if (this.#facts.organization !== undefined) identify(this.#request, this.#facts.organization)
    Exchange.conclude(this.#facts, observers, this.#request, answer)
    if (this.#facts.trace !== undefined) RequestFacts.endSpan(context, this.#facts.trace, this.#facts)
  }

  #close() {
    clearTimeout(this.#slow)
    if (this.#isOver) return
    this.#isOver = true
    this.#fiber?.interruptUnsafe()
    this.#conclude(undefined)
  }
}

/** Opens the lane of the listener until the scope closes. */
export const layer = ({ isKey, reads }: Options) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { front } = yield* Listener
      const observers = yield* RequestFacts.RequestObservers
      const shared: Shared = {
        // By default, each eighth service that a request adds copies all.
        context: Context.makeUnsafe((yield* Effect.context()).mapUnsafe, { maxDepth: 20 }),
        clock: yield* Clock.Clock,
        observers,
        answered: (yield* Series.current).counter("practice_data_http_requests_lane_total")
      }
      yield* front((request, response, pass) => {
        const path = request.url ?? ""
        const read = reads.get(path)
        const key = read === undefined ? undefined : keyOf(request)
        if (read === undefined || key === undefined || !isKey.test(key)) return pass()
        new LaneRequest(shared, read, key, path, request, response, pass).start()
      })
    })
  )
