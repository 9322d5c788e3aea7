/** Clients over a `fetch` of the test's own: the service in this process, or made-up responses. */
import { Effect } from "effect"
import { type ClientOptions, type Fetch, PracticeData } from "../../../src/client/index.ts"
import { InProcess, key } from "../../support/inProcess.ts"

export const baseUrl = "http://service.test"

/** A client without retries. */
export const clientOf = (fetch: Fetch, options: Partial<ClientOptions> & { readonly apiKey?: string } = {}) =>
  new PracticeData({ baseUrl, apiKey: key, fetch, maxRetries: 0, ...options })

/** A request as it was sent. */
export interface Sent {
  readonly url: string
  readonly headers: Headers
  readonly body: string
  readonly signal: AbortSignal | undefined
  readonly redirect: RequestInit["redirect"]
}

export const sentOf = (url: string, init: RequestInit): Sent => ({
  url,
  headers: new Headers(init.headers),
  body: typeof init.body === "string" ? init.body : "",
  signal: init.signal ?? undefined,
  redirect: init.redirect
})

/** The bodies of requests. */
export const bodiesOf = (all: ReadonlyArray<Sent>) => all.map(({ body }) => body)

/** The server of the test's layer, as a `fetch` that keeps its requests. */
export const inProcess = Effect.map(InProcess, (handle) => {
  const sent: Array<Sent> = []
  const fetch: Fetch = (url, init) => {
    sent.push(sentOf(url, init))
    return handle(new Request(url, init))
  }
  return { fetch, sent }
})

/** A test of promises over the server of the test's layer. */
export const over = (test: (server: Effect.Success<typeof inProcess>) => Promise<void>) =>
  Effect.flatMap(inProcess, (server) => Effect.promise(() => test(server)))

/** The response of a made-up service to a request. */
export type Step = (sent: Sent) => Promise<Response> | Response

/** A `fetch` that takes one step after the other, and the last one from then on. */
export const steps = (...all: readonly [Step, ...Array<Step>]) => {
  const sent: Array<Sent> = []
  const fetch: Fetch = async (url, init) => {
    const request = sentOf(url, init)
    const step = all[Math.min(sent.length, all.length - 1)] ?? all[0]
    sent.push(request)
    return step(request)
  }
  return { fetch, sent }
}

/** A response of JSON. */
export const json =
  (value: unknown, { headers = {}, status = 200 }: { headers?: Record<string, string>; status?: number } = {}): Step =>
  () =>
    Response.json(value, { status, headers: { "x-request-id": "request-1", ...headers } })

/** An error of the service. */
export const refused = (status: number, detail: unknown = `It is ${status}`, headers: Record<string, string> = {}) =>
  json({ detail }, { status, headers: { "x-service": "practice-data", "x-error": "of_the_test", ...headers } })

/** A connection that fails. */
export const broken: Step = () => Promise.reject(new TypeError("fetch failed"))

/** The id of a record. */
export const idOf = ({ id }: { readonly id?: unknown }) => id

/** An empty page of a search. */
export const emptyPage = json({ body: [] })

/** The error of a promise that rejects. */
export const failureOf = async (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    (value) => {
      throw new Error(`It succeeded with ${JSON.stringify(value)}`)
    },
    (error: unknown) => error
  )

/** The items of an iteration. */
export const collect = async <A>(iteration: AsyncIterable<A>): Promise<Array<A>> => {
  const all: Array<A> = []
  for await (const each of iteration) all.push(each)
  return all
}
