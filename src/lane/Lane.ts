/**
 * The lane: answers small, valid reads in front of the router, in one fiber each, by the handlers of their endpoints. Any
 * other request goes on to the router. The response, the order of its headers and the facts of the request are the same
 * either way; a single record takes a quarter of the router's CPU time.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { Clock, Context, Effect, Exit, Layer, Result } from "effect"
import type { HttpServerResponse } from "effect/http"
import * as Exchange from "../http/Exchange.ts"
import { isJson, parse } from "../http/JsonBodyServer.ts"
import { Front } from "../http/Listener.ts"
import { unexpectedErrors } from "../http/Middleware.ts"
import { visiblePrefix } from "../keys/OrgResolver.ts"
import * as Metrics from "../observability/Metrics.ts"
import * as Tracing from "../observability/Tracing.ts"
import * as Time from "../observability/Time.ts"
import * as Reads from "./Reads.ts"

type Answer = Effect.Effect<HttpServerResponse.HttpServerResponse>

/** Bytes: a read is small, and larger bodies arrive in several pieces. */
const longestBody = 8 * 1024

const bearer = /^Bearer ([\x21-\x7e]+)$/i

/** The API key of a request whose head the lane can answer. */
const findKey = ({ headers, method }: IncomingMessage): string | undefined => {
  const { authorization = "", "content-length": length = "" } = headers
  const isPlain =
    method === "POST" &&
    isJson(headers["content-type"]) &&
    Number(length) <= longestBody &&
    Number(length) > 0 &&
    headers["content-encoding"] === undefined &&
    headers["transfer-encoding"] === undefined
  return isPlain ? bearer.exec(authorization)?.[1] : undefined
}

/** Takes the body of a request, and calls `answer` with its value. Where that is undefined, puts the body back. */
const answerBody = (request: IncomingMessage, answer: (payload: unknown) => Answer | undefined): Answer | undefined => {
  const body: unknown = request.read()
  // A body that came in pieces is read in pieces.
  const payload = body instanceof Uint8Array && request.readableLength === 0 ? parse(body) : undefined
  const found = payload !== undefined && Result.isSuccess(payload) ? answer(payload.success) : undefined
  if (found === undefined && body !== null) request.unshift(body)
  return found
}

/** Sends an answer, and returns it as it was sent. */
const respond = Effect.fnUntraced(function* (response: ServerResponse, exchange: Exchange.Exchange, answer: Answer) {
  const made = yield* Tracing.within(exchange.trace, unexpectedErrors(answer))
  const sent = Exchange.completeRaw(made, exchange)
  response.writeHead(sent.status, sent.headers)
  // A text, which most errors are, is sent together with the headers.
  response.end(sent.body._tag === "Uint8Array" ? (sent.body.text ?? sent.body.body) : undefined)
  return sent
})

/**
 * Runs what was given in a turn of the event loop after it, all at once: the statements of these requests are sent in one
 * write, and each turn costs more system calls.
 */
const makeAfterTurn = () => {
  const waiting: Array<() => void> = []
  return (one: () => void) => {
    if (waiting.push(one) === 1) setImmediate(() => waiting.splice(0).forEach((each) => each()))
  }
}

const make = Effect.gen(function* () {
  const afterTurn = makeAfterTurn()
  const reads = yield* Reads.make
  const clock = yield* Clock.Clock
  const answered = (yield* Metrics.series).counter("practice_data_http_requests_lane_total")
  // By default, every eighth service that a request adds copies the whole context.
  const context = Context.makeUnsafe((yield* Effect.context()).mapUnsafe, { maxDepth: 20 })

  /** Sends an answer from a fiber of its own, which ends with the connection. */
  const send = (response: ServerResponse, exchange: Exchange.Exchange, answer: Answer) => {
    const fiber = Effect.runForkWith(Exchange.provide(context, exchange))(respond(response, exchange, answer))
    fiber.addObserver((exit) => {
      answered.add()
      Exchange.conclude(context, exchange, Exit.isSuccess(exit) ? exit.value : undefined)
      if (Exit.isFailure(exit)) response.destroy()
    })
    response.once("close", () => fiber.interruptUnsafe())
  }

  return (request: IncomingMessage, response: ServerResponse, pass: () => void) => {
    const path = request.url ?? ""
    const read = reads.get(path)
    const key = read === undefined ? undefined : findKey(request)
    if (read === undefined || key === undefined) return pass()
    const started = Time.monotonicMillis(clock)
    const take = () => {
      const answer = answerBody(request, (payload) => read(payload, key))
      if (answer === undefined) return pass()
      const head = { method: "POST", path, endpoint: path, address: request.socket.remoteAddress }
      const exchange = Exchange.begin(context, head, request.headers, started)
      exchange.notes.keyPrefix = visiblePrefix(key)
      send(response, exchange, answer)
    }
    const onReadable = () => {
      if (!request.complete) return
      request.off("readable", onReadable)
      take()
    }
    // By then, a body that came with its head is complete, and needs no listener; at the next tick it is not.
    afterTurn(() => {
      if (request.complete || request.destroyed) return take()
      request.on("readable", onReadable)
      // The client left before it sent all of the body.
      request.once("close", () => request.complete || pass())
    })
  }
})

/** Opens the lane of the listener. */
export const layer = Layer.effect(Front, make)
