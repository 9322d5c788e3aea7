/** Sends requests: each with a timeout and a limit of its response's size, and again if a retry may help. */
import { ConnectionError, PracticeDataError, ResponseTooLargeError, TimeoutError } from "./Errors.ts"
import { version } from "./generated/version.ts"
import { type RequestOptions, type Settings, settingsWith } from "./Options.ts"
import { type Answer, type ApiRequest, resultOf, type WithResponse } from "./Response.ts"

/** Settles as the work does, or rejects with the reason of the signal as soon as it is aborted. */
const abortable = <A>(work: Promise<A>, signal: AbortSignal): Promise<A> =>
  new Promise<A>((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener("abort", abort, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort))
  })

export const pause = async (millis: number, signal: AbortSignal | undefined): Promise<void> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const elapsed = new Promise<void>((resolve) => (timer = setTimeout(resolve, millis)))
  await (signal ? abortable(elapsed, signal) : elapsed).finally(() => clearTimeout(timer))
}

/** In bytes: twice the service's limit for the payment processor, and some sixty pages of 1000 records. */
const largestBody = 64 * 1024 * 1024

const textOf = async (response: Response, signal: AbortSignal): Promise<string> => {
  const { body, status } = response
  // Some implementations of fetch have no bodies that can be streamed.
  if (!body) return response.text()
  let size = 0
  const limit = new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
    transform: (piece, controller) => {
      size += piece.byteLength
      if (size > largestBody) {
        const message = `The response is larger than ${largestBody} bytes. Request fewer records at once`
        throw new ResponseTooLargeError(message, { status })
      }
      controller.enqueue(piece)
    }
  })
  return new Response(body.pipeThrough(limit, { signal })).text()
}

/** The reason of a failed connection, in the words of its cause. */
const reasonOf = (error: unknown): string => {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  if (!(cause instanceof Error)) return String(cause)
  return cause.message || ("code" in cause ? String(cause.code) : cause.name)
}

/** Sends a request once. The timeout, in milliseconds, covers the body. */
const sendOnce = async <A>(
  { fetch, ...settings }: Settings,
  url: string,
  { held = 0, idempotencyKey, onHeaders }: ApiRequest<A>,
  init: RequestInit,
  signal: AbortSignal | undefined
): Promise<WithResponse<string>> => {
  const timeout = settings.timeout + held
  const host = new URL(url).origin
  const ending = new AbortController()
  const ended = ending.signal
  // Not by `AbortSignal.any`: in Node 22, a signal keeps 200 bytes of each one that was made of it.
  const leave = () => ending.abort(signal?.reason)
  if (signal?.aborted) leave()
  signal?.addEventListener("abort", leave)
  let begun: number | undefined
  const perform = async () => {
    const response = await fetch(url, { ...init, method: "POST", signal: ended, redirect: "manual" })
    const { headers, status } = response
    begun = status
    const requestId = headers.get("x-request-id") ?? undefined
    if (response.ok) onHeaders?.(headers)
    return { status, headers, requestId, data: await textOf(response, ended) }
  }
  const late = () =>
    new TimeoutError(`No whole response from ${host} within ${timeout} milliseconds`, { status: begun, idempotencyKey })
  const timer = setTimeout(() => ending.abort(late()), timeout)
  try {
    return await abortable(perform(), ended)
  } catch (cause) {
    ended.throwIfAborted()
    if (cause instanceof ResponseTooLargeError) throw cause
    const message = `Cannot get a ${begun === undefined ? "" : "whole "}response from ${host}: ${reasonOf(cause)}`
    throw new ConnectionError(message, { status: begun, idempotencyKey }, { cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener("abort", leave)
  }
}

/** Statuses that may be another one the next time. 408, 502 and 504 are of a connection or a gateway. */
const retried = new Set([408, 429, 502, 503, 504])

/** The longest Retry-After that is honored, in seconds; beyond it, the request fails. */
const longestRetryAfter = 60

/** Milliseconds until the next attempt: full jitter over a backoff that doubles, up to 8 seconds. Undefined: no retry. */
const delayAfter = (error: unknown, retries: number): number | undefined => {
  const backoff = Math.random() * Math.min(8000, 500 * 2 ** retries)
  if (error instanceof ConnectionError || error instanceof TimeoutError) return backoff
  if (!(error instanceof PracticeDataError) || !retried.has(error.status ?? 0)) return undefined
  const { retryAfter = 0 } = error
  return retryAfter > longestRetryAfter ? undefined : retryAfter * 1000 + backoff
}

/** JSON would make an invalid date null, which counts as absent and widens the result. */
const stringify = (body: object): string => {
  for (const [name, value] of Object.entries(body)) {
    if (value instanceof Date && Number.isNaN(value.getTime())) throw new RangeError(`${name} is an invalid date`)
    if (typeof value === "number" && !Number.isFinite(value)) throw new RangeError(`${name} is ${value}`)
  }
  return JSON.stringify(body)
}

const sendWithRetries = async <A>(
  client: Settings,
  request: ApiRequest<A>,
  options: RequestOptions
): Promise<WithResponse<A>> => {
  const settings = settingsWith(client, options)
  const { signal } = options
  const url = `${settings.origin}${request.path}`
  const body = stringify(request.body)
  for (let retries = 0; ; retries += 1) {
    signal?.throwIfAborted()
    const began = performance.now()
    let reply: WithResponse<string> | undefined
    const report = (error?: unknown) =>
      settings.onAttempt?.({
        path: request.path,
        attempt: retries + 1,
        milliseconds: Math.round(performance.now() - began),
        status: reply?.status,
        requestId: reply?.requestId,
        error
      })
    try {
      const headers = new Headers({
        accept: "application/json",
        "user-agent": `practice-data/${version}`,
        ...settings.headers,
        "content-type": "application/json",
        ...(await request.headers(body))
      })
      reply = await sendOnce(settings, url, request, { headers, body }, signal)
      const data = resultOf(url, request, reply)
      report()
      return { ...reply, data }
    } catch (error) {
      report(error)
      const delay = retries < settings.maxRetries ? delayAfter(error, retries) : undefined
      if (delay === undefined) throw error
      await pause(delay, signal)
    }
  }
}

export const send = <A>(client: Settings, request: ApiRequest<A>, options: RequestOptions = {}): Answer<A> => {
  const work = sendWithRetries(client, request, options)
  const result = work.then(({ data }) => data)
  const withResponse = () => {
    // A failure is reported by the promise that is returned.
    result.catch(() => {})
    return work.then((whole) => whole)
  }
  return Object.assign(result, { withResponse })
}
