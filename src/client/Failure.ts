/** Makes errors of responses. */
import type { Reply } from "./Exchange.ts"
import {
  AuthenticationError,
  BadRequestError,
  CursorExpiredError,
  type ErrorDetails,
  InvalidRequestError,
  NotFoundError,
  PracticeDataError,
  RateLimitError,
  ServerError,
  ServiceUnavailableError,
  UnexpectedResponseError
} from "./Errors.ts"
import type { ValidationError } from "./generated/types.ts"
import { isObject, parse } from "./Json.ts"

/** What the message of an error names: the endpoint, and of a delivery its key. */
export interface Subject {
  readonly path: string
  readonly idempotencyKey?: string | undefined
}

const isFault = (value: unknown): value is ValidationError =>
  isObject(value) &&
  Array.isArray(value["loc"]) &&
  typeof value["msg"] === "string" &&
  typeof value["type"] === "string"

const shown = 3

/** What faults say, in one line. */
const summary = (faults: ReadonlyArray<ValidationError>) => {
  const texts = faults.slice(0, shown).map(({ loc, msg }) => `${loc.join(".")}: ${msg}`)
  return [...texts, ...(faults.length > shown ? [`and ${faults.length - shown} more`] : [])].join("; ")
}

/** In seconds; of a date, from now on. */
const retryAfterOf = (headers: Headers) => {
  const value = headers.get("retry-after") ?? ""
  if (/^\d+$/.test(value)) return Number(value)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000))
}

const classes = new Map([
  [400, BadRequestError],
  [401, AuthenticationError],
  [404, NotFoundError],
  [410, CursorExpiredError],
  [429, RateLimitError],
  [503, ServiceUnavailableError]
])

/** What a body is that the service does not give. What JSON holds may be records, which are for no log. */
const notOurs = (text: string) => {
  const line = text.slice(0, 500).replaceAll(/\s+/g, " ").trim()
  const what = line === "" ? "an empty body" : `"${line.slice(0, 80)}"`
  return `not a response of Practice Data, but ${parse(text) === undefined ? what : "other JSON"}`
}

const messageOf = (from: string, status: number, detail: string, requestId: string | undefined) =>
  `${status} from ${from}: ${detail}${requestId === undefined ? "" : ` (request ${requestId})`}`

const detailsOf = (subject: Subject, { headers, status }: Reply): ErrorDetails => ({
  status,
  requestId: headers.get("x-request-id") ?? undefined,
  retryAfter: retryAfterOf(headers),
  idempotencyKey: subject.idempotencyKey
})

const toCheck = "Check the base URL, which ends before /api, and any proxy in between"

/** A response that the service does not give. */
export const unexpected = (subject: Subject, reply: Reply): UnexpectedResponseError => {
  const details = detailsOf(subject, reply)
  const location = reply.headers.get("location")
  const what =
    reply.status >= 300 && reply.status < 400
      ? `a redirect${location === null ? "" : ` to ${location}`}, which is not followed`
      : notOurs(reply.text)
  return new UnexpectedResponseError(
    messageOf(reply.url, reply.status, `${what}. ${toCheck}`, details.requestId),
    details
  )
}

/** The header of every error of the service's endpoints. */
const isOurs = ({ headers }: Reply) => headers.get("x-service") === "practice-data"

/** A response other than a success. */
export const failureOf = (subject: Subject, reply: Reply): PracticeDataError => {
  const { status, text } = reply
  const json = parse(text)
  const body = isObject(json) ? json : {}
  const details = detailsOf(subject, reply)
  if (status === 422 && isOurs(reply) && Array.isArray(body["detail"]) && body["detail"].every(isFault)) {
    const detail = summary(body["detail"])
    const message = messageOf(subject.path, status, detail, details.requestId)
    return new InvalidRequestError(message, { ...details, detail }, body["detail"])
  }
  // The intake's 503 has the body of a receipt.
  const detail = status === 503 && body["status"] === "error" ? "The delivery was not stored" : body["detail"]
  const isText = typeof detail === "string"
  // A program may take a 404 for a record that is gone, so it has to be the service that says so.
  if (status !== 429 && status < 500 && !(isText && isOurs(reply))) return unexpected(subject, reply)
  const Class = classes.get(status) ?? (status >= 500 ? ServerError : PracticeDataError)
  return new Class(messageOf(subject.path, status, isText ? detail : notOurs(text), details.requestId), {
    ...details,
    detail: isText ? detail : undefined
  })
}
