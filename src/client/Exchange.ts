/** One try of a request: the response as text, of a bounded size and within a bounded time. */
import { ConnectionError, TimeoutError, UnexpectedResponseError } from "./Errors.ts"
import type { Fetch } from "./Options.ts"
import { abortable } from "./Retry.ts"

export interface Request {
  readonly url: string
  readonly headers: Headers
  readonly body: string
  readonly idempotencyKey?: string | undefined
}

export interface Reply {
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** In bytes: twice what the service passes on of the payment processor, and some sixty pages of 1000 records. */
const largestBody = 64 * 1024 * 1024

const textOf = async (response: Response, signal: AbortSignal): Promise<string> => {
  // Not everything that calls itself a fetch has bodies that can be streamed.
  if (!response.body) return response.text()
  const reader = response.body.getReader()
  const decoder = new TextDecoder()
  let text = ""
  let size = 0
  try {
    for (;;) {
      const { done, value } = await abortable(reader.read(), signal)
      if (done) return text + decoder.decode()
      size += value.byteLength
      if (size > largestBody) {
        throw new UnexpectedResponseError(`The response is larger than ${largestBody} bytes`, {
          status: response.status
        })
      }
      text += decoder.decode(value, { stream: true })
    }
  } catch (error) {
    // What is still to come is not waited for.
    void reader.cancel(error).catch(() => {})
    throw error
  }
}

const perform = async (fetch: Fetch, { body, headers, url }: Request, signal: AbortSignal): Promise<Reply> => {
  const response = await fetch(url, { method: "POST", headers, body, signal, redirect: "manual" })
  // A redirect that a browser hides from its page.
  const status = response.type === "opaqueredirect" ? 302 : response.status
  return { url, status, headers: response.headers, text: await textOf(response, signal) }
}

/** Why a connection failed, in the words of the deepest cause. */
const reasonOf = (cause: unknown): string => {
  let reason = ""
  for (let at = cause, depth = 0; at instanceof Error && depth < 5; at = at.cause, depth += 1) {
    const code = "code" in at && typeof at.code === "string" ? at.code : undefined
    reason = at.message || code || reason
  }
  return reason || String(cause)
}

/**
 * Sends a request once. Rejects with a `TimeoutError`, a `ConnectionError`, an `UnexpectedResponseError`, or the reason
 * of the caller's signal. The timeout, in milliseconds, covers the body.
 */
export const exchange = async (
  fetch: Fetch,
  request: Request,
  timeout: number,
  signal: AbortSignal | undefined
): Promise<Reply> => {
  signal?.throwIfAborted()
  const { idempotencyKey, url } = request
  const { origin } = new URL(url)
  const controller = new AbortController()
  const abort = () => controller.abort(signal?.reason)
  signal?.addEventListener("abort", abort, { once: true })
  const late = new TimeoutError(`No whole response from ${origin} within ${timeout} milliseconds`, { idempotencyKey })
  const timer = setTimeout(() => controller.abort(late), timeout)
  try {
    return await abortable(perform(fetch, request, controller.signal), controller.signal)
  } catch (cause) {
    signal?.throwIfAborted()
    if (controller.signal.aborted) throw late
    if (cause instanceof UnexpectedResponseError) throw cause
    throw new ConnectionError(`Cannot get a response from ${origin}: ${reasonOf(cause)}`, { idempotencyKey }, { cause })
  } finally {
    clearTimeout(timer)
    signal?.removeEventListener("abort", abort)
  }
}
