/** The operators' listener in this process: its routes over made-up figures and stores, without a socket. */
import { Context, Effect, Layer, Option, Redacted, type Scope } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { Token } from "../../../src/operations/Access.ts"
import type { Figures } from "../../../src/operations/Figures.ts"
import { routes } from "../../../src/operations/OperationsListener.ts"
import type { OperatorStore } from "../../../src/operations/OperatorStore.ts"

/** The operators' token. */
export const token = "correct-horse-battery"

type Handler = Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  never,
  HttpServerRequest.HttpServerRequest | Scope.Scope
>

class Served extends Context.Service<Served, { readonly handler: Handler }>()(
  "practice-data/test/unit/operations/pages/Served"
) {}

/** The configuration of the listener. */
export interface Configured {
  readonly host?: string
  readonly token?: string | undefined
}

/** The listener, over figures and a store. */
export const listener = (
  services: Layer.Layer<Figures | OperatorStore>,
  { host = "127.0.0.1", token: given }: Configured = { token }
) =>
  Layer.effect(
    Served,
    Effect.gen(function* () {
      const operators = yield* Token
      const handler = yield* HttpRouter.toHttpEffect(routes(host))
      return Served.of({ handler: Effect.orDie(Effect.provideService(handler, Token, operators)) })
    })
  ).pipe(Layer.provide([services, Token.layer(Option.map(Option.fromNullishOr(given), (text) => Redacted.make(text)))]))

/** A request: its differences from a reader's on this machine. */
export interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The fields of a form. */
  readonly form?: Readonly<Record<string, string>>
}

/** HTTP Basic. */
export const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`
})

/** Sends a request to the listener. */
export const ask = Effect.fnUntraced(function* (path: string, { form, headers = {}, method }: Asked = {}) {
  const { handler } = yield* Served
  const request = new Request(`http://localhost:9464${path}`, {
    method: method ?? (form === undefined ? "GET" : "POST"),
    headers: { host: "localhost:9464", accept: "text/html", ...headers },
    ...(form === undefined ? {} : { body: new URLSearchParams(form) })
  })
  // The path alone, as Node gives it.
  const served = HttpServerRequest.fromWeb(request).modify({ url: path })
  const response = HttpServerResponse.toWeb(
    yield* Effect.provideService(handler, HttpServerRequest.HttpServerRequest, served)
  )
  return { status: response.status, headers: response.headers, text: yield* Effect.promise(() => response.text()) }
}, Effect.scoped)
