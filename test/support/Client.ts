/** Speaks HTTP to the program, byte for byte: keep-alive connections, any headers, any body. */
import { type Dispatcher, Pool } from "@effect/platform-node/Undici"
import { Data, Effect, Schedule } from "effect"

/** What the program answered. */
export interface Answer {
  readonly status: number
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly text: string
}

/** No answer came. */
export class NoAnswer extends Data.TaggedError("NoAnswer")<{ readonly cause: unknown }> {}

/** The API keys of the demo organizations. */
export const keys = { oakridge: "pda_demo_oakridge", harbor: "pda_demo_harbor" } as const

/** A demo organization. */
export type Organization = keyof typeof keys

export type Headers = Readonly<Record<string, string>>

/** The headers of a request as it should be. */
export const headersOf = (organization: Organization): Headers => ({
  authorization: `Bearer ${keys[organization]}`,
  "content-type": "application/json"
})

/** A request as it goes over the wire. */
export interface Call {
  readonly path: string
  readonly method?: "POST" | "GET" | "HEAD" | "PUT" | "PATCH" | "DELETE"
  readonly headers?: Headers
  readonly body?: string | Uint8Array
}

/** A value as JSON. */
export const json = (value: unknown): string => JSON.stringify(value)

const connect = (address: string, connections: number) =>
  Effect.acquireRelease(
    Effect.sync(() => new Pool(address, { connections, headersTimeout: 20_000, keepAliveTimeout: 60_000 })),
    (pool) => Effect.promise(() => pool.destroy())
  )

const clientOf = (address: string, call: (request: Call) => Effect.Effect<Answer, NoAnswer>) => ({
  address,
  call,
  /** Asks an endpoint of the data API, on behalf of an organization. */
  ask: (path: string, body: unknown = {}, organization: Organization = "oakridge") =>
    call({ path: `/api/v3${path}`, headers: headersOf(organization), body: json(body) })
})

const answerOf = ({ body, headers, statusCode: status }: Dispatcher.ResponseData) =>
  body.text().then((text): Answer => ({ status, headers, text }))

/** A client of the program at an address. */
export const make = Effect.fnUntraced(function* (address: string, connections = 8) {
  const pool = yield* connect(address, connections)

  const call = ({ path, method = "POST", headers = headersOf("oakridge"), body }: Call) => {
    const sent = body === undefined ? {} : { body }
    return Effect.tryPromise({
      try: (signal) => pool.request({ path, method, headers, signal, ...sent }).then(answerOf),
      catch: (cause) => new NoAnswer({ cause })
    })
  }

  return clientOf(address, call)
})

export type Client = Effect.Success<ReturnType<typeof make>>

/** The same client, which retries a 503 for ten seconds: a program that has just started, or is busy, answers so. */
export const patient = ({ address, call }: Client) =>
  clientOf(address, (request) =>
    Effect.repeat(call(request), {
      while: ({ status }) => status === 503,
      schedule: Schedule.spaced("200 millis"),
      times: 50
    })
  )
