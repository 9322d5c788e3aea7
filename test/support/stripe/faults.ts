/** Ways in which a processor fails: each takes the response of one request and answers wrongly, or not at all. */
import type { ServerResponse } from "node:http"

/** How one request is failed. */
export type Fault = (response: ServerResponse) => void

/** Something that only the processor says: found anywhere else, it has leaked. */
export const processorText = "lighthouse keeper"

/** Answers in full. */
export const answer =
  (status: number, body: string, headers: Readonly<Record<string, string>> = {}): Fault =>
  (response) => {
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(body)
  }

interface Refusal {
  readonly type: string
  readonly code?: string
  readonly param?: string
}

/** Answers with an error as Stripe writes one. Its message is of the kind that must go nowhere. */
export const error = (status: number, refusal: Refusal, headers: Readonly<Record<string, string>> = {}): Fault =>
  answer(status, JSON.stringify({ error: { ...refusal, message: processorText } }), headers)

/** Refuses a request because there are too many. */
export const rateLimit = (retryAfter?: string, headers: Readonly<Record<string, string>> = {}): Fault =>
  error(
    429,
    { type: "invalid_request_error", code: "rate_limit" },
    retryAfter === undefined ? headers : { ...headers, "retry-after": retryAfter }
  )

/** Fails on its side. */
export const internal = error(500, { type: "api_error" })

/** Does not know our key, as Stripe says it: in words alone. */
export const unknownKey = answer(
  401,
  JSON.stringify({
    error: { type: "invalid_request_error", message: `Invalid API Key provided: ${processorText}` }
  })
)

/** Lacks a permission of our restricted key, as Stripe says it: in words alone. */
export const lacksPermission = answer(
  403,
  JSON.stringify({
    error: {
      type: "invalid_request_error",
      message: `The provided key 'rk_live_***${processorText}' does not have the required permissions for this endpoint on account 'acct_oak'. Having the 'rak_payout_read' permission would allow this request to continue.`
    }
  })
)

/** Answers with a body of so many bytes that is a list. */
export const large =
  (bytes: number): Fault =>
  (response) => {
    const [before, after] = ['{"data":[{"id":"ch_1","filler":"', '"}],"has_more":false}']
    answer(200, `${before}${"x".repeat(bytes - before.length - after.length)}${after}`)(response)
  }

/** Answers with a page for people, as something in between would. */
export const html = (status: number): Fault =>
  answer(status, `<!doctype html><title>${processorText}</title>`, { "content-type": "text/html" })

const start = `{"object":"list","data":[{"id":"txn_1","description":"${processorText}`

const begin = (response: ServerResponse, headers: Readonly<Record<string, string>> = {}) =>
  response.writeHead(200, { "content-type": "application/json", ...headers })

/** Closes the connection in the middle of a body, in good order. */
export const cutShort: Fault = (response) => {
  begin(response, { connection: "close" }).end(start)
}

/** Breaks the connection. */
export const reset: Fault = (response) => {
  response.socket?.resetAndDestroy()
}

/** Breaks the connection in the middle of a body. */
export const resetInBody: Fault = (response) => {
  begin(response).write(start, () => response.socket?.resetAndDestroy())
}

/** Takes the request and never answers. */
export const hang: Fault = () => undefined

/** Begins to answer, and then says nothing more. */
export const hangInBody: Fault = (response) => {
  begin(response).write(start)
}
