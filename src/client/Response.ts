/** Reads responses: results, which can also show their response, and errors by their status. */
import * as Errors from "./Errors.ts"
import type { AllChanges, ChangesPage, ValidationError } from "./generated/types.ts"

/** A result with the response that held it. */
export interface WithResponse<A> {
  readonly data: A
  readonly status: number
  readonly headers: Headers
  /** The id of the request, which the logs of the service name. */
  readonly requestId: string | undefined
}

/** A promise of a result. */
export interface Answer<A> extends Promise<A> {
  /**
   * The result with its response.
   *
   * @example
   * const { data, headers, requestId } = await client.charges.get("charge_1").withResponse()
   */
  readonly withResponse: () => Promise<WithResponse<A>>
}

export const answerOf = <A>(work: Promise<WithResponse<A>>): Answer<A> => {
  const result = work.then(({ data }) => data)
  const withResponse = () => {
    // A failure is reported by the promise that is returned.
    result.catch(() => {})
    return work.then((whole) => whole)
  }
  return Object.assign(result, { withResponse })
}

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value of a text; undefined if it is not JSON. */
const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A response, read to its end. */
export interface Reply {
  readonly url: string
  readonly status: number
  readonly headers: Headers
  readonly text: string
}

/** The request of a response, as messages name it. */
export interface Subject {
  readonly path: string
  readonly idempotencyKey?: string | undefined
}

/** Reads the body of a success. Undefined: it is not such a body. */
export type Read<A> = (json: unknown, headers: Headers) => A | undefined

const isText = (value: unknown): value is string => typeof value === "string"

const isFault = (value: unknown): value is ValidationError =>
  isObject(value) && Array.isArray(value["loc"]) && isText(value["msg"]) && isText(value["type"])

const summaryOf = (faults: ReadonlyArray<ValidationError>) => {
  const texts = faults.slice(0, 3).map(({ loc, msg }) => `${loc.join(".")}: ${msg}`)
  if (faults.length > 3) texts.push(`and ${faults.length - 3} more`)
  return texts.join("; ")
}

/** In seconds; of a date, from now on. */
const retryAfterOf = (headers: Headers) => {
  const value = headers.get("retry-after") ?? ""
  if (/^\d+$/.test(value)) return Number(value)
  const date = Date.parse(value)
  return Number.isNaN(date) ? undefined : Math.max(0, Math.ceil((date - Date.now()) / 1000))
}

const classes = new Map([
  [400, Errors.BadRequestError],
  [401, Errors.AuthenticationError],
  [404, Errors.NotFoundError],
  [410, Errors.CursorExpiredError],
  [429, Errors.RateLimitError],
  [503, Errors.ServiceUnavailableError]
])

/** Describes a body that the service does not give. JSON may hold records, which no log may show. */
const notOurs = (text: string) => {
  const line = text.slice(0, 500).replaceAll(/\s+/g, " ").trim()
  const what = line === "" ? "an empty body" : `"${line.slice(0, 80)}"`
  return `not a response of Practice Data, but ${parse(text) === undefined ? what : "other JSON"}`
}

const detailsOf = (subject: Subject, { headers, status }: Reply): Errors.ErrorDetails => ({
  status,
  requestId: headers.get("x-request-id") ?? undefined,
  retryAfter: retryAfterOf(headers),
  idempotencyKey: subject.idempotencyKey
})

const messageOf = (from: string, { requestId, status }: Errors.ErrorDetails, detail: string) =>
  `${status} from ${from}: ${detail}${requestId === undefined ? "" : ` (request ${requestId})`}`

/** The error of a response that the service does not give. */
const unexpected = (subject: Subject, reply: Reply) => {
  const details = detailsOf(subject, reply)
  const location = reply.headers.get("location")
  const what =
    reply.status >= 300 && reply.status < 400
      ? `a redirect${location === null ? "" : ` to ${location}`}, which is not followed`
      : notOurs(reply.text)
  const advice = "Check the base URL, which ends before /api, and any proxy in between"
  return new Errors.UnexpectedResponseError(messageOf(reply.url, details, `${what}. ${advice}`), details)
}

/** The error of a response with a status from 400 on. */
const failureOf = (subject: Subject, reply: Reply): Errors.PracticeDataError => {
  const { headers, status, text } = reply
  const json = parse(text)
  const body = isObject(json) ? json : {}
  const details = detailsOf(subject, reply)
  // A header of every error of the service's endpoints.
  const isOurs = headers.get("x-service") === "practice-data"
  if (status === 422 && isOurs && Array.isArray(body["detail"]) && body["detail"].every(isFault)) {
    const detail = summaryOf(body["detail"])
    const message = messageOf(subject.path, details, detail)
    return new Errors.InvalidRequestError(message, { ...details, detail }, body["detail"])
  }
  // The intake's 503 has the body of a receipt.
  const said = status === 503 && body["status"] === "error" ? "The delivery was not stored" : body["detail"]
  const detail = isText(said) ? said : undefined
  // A program may take a 404 for a record that is gone, so the service itself has to say so.
  if (status !== 429 && status < 500 && (detail === undefined || !isOurs)) return unexpected(subject, reply)
  const Class = classes.get(status) ?? (status >= 500 ? Errors.ServerError : Errors.PracticeDataError)
  return new Class(messageOf(subject.path, details, detail ?? notOurs(text)), { ...details, detail })
}

/** The result of a response. Throws the error of any other than a success. */
export const resultOf = <A>(subject: Subject, read: Read<A>, reply: Reply): A => {
  const { headers, status, text } = reply
  if (status >= 400) throw failureOf(subject, reply)
  const result = status >= 200 && status < 300 ? read(parse(text), headers) : undefined
  if (result === undefined) throw unexpected(subject, reply)
  return result
}

// The service is trusted to give records that are as its OpenAPI document says.
const isRecord = <Item>(value: unknown): value is Item => isObject(value)

const isListOf = <Item>(value: unknown, is: (item: unknown) => item is Item): value is Array<Item> =>
  Array.isArray(value) && value.every(is)

export const readRecord =
  <Item>(id: string): Read<Item> =>
  (json) =>
    isObject(json) && isText(json[id]) && isRecord<Item>(json) ? json : undefined

export const readBody = <Item>(json: unknown): Array<Item> | undefined =>
  isObject(json) && isListOf(json["body"], isRecord<Item>) ? json["body"] : undefined

export const readLive = <Item>(json: unknown): { data: Array<Item>; has_more: boolean } | undefined => {
  const { data, has_more } = isObject(json) ? json : {}
  return isListOf(data, isRecord<Item>) && typeof has_more === "boolean" ? { data, has_more } : undefined
}

export const readChanges = <Item>(json: unknown, headers: Headers): ChangesPage<Item> | undefined => {
  const { body, cursor, has_more, removed } = isObject(json) ? json : {}
  if (!isListOf(body, isRecord<Item>) || !isListOf(removed, isText)) return undefined
  if (!isText(cursor) || typeof has_more !== "boolean") return undefined
  const lag = Number(headers.get("x-changes-lag") ?? 0)
  // An older service has no such header: a load is certainly complete only while nothing is held back.
  const complete = (headers.get("x-changes-complete") ?? `${lag === 0}`) === "true"
  return { body, removed, cursor, has_more, lag, complete }
}

// The service is trusted to give changes that are as its OpenAPI document says.
const isChange = (value: unknown): value is AllChanges["body"][number] =>
  isObject(value) && isText(value["resource"]) && ("record" in value || "removed" in value || "reset" in value)

export const readAllChanges = (json: unknown, headers: Headers): AllChanges | undefined => {
  const { body, cursor, has_more, is_consistent, schema } = isObject(json) ? json : {}
  if (!isListOf(body, isChange) || !isText(cursor) || !isText(schema)) return undefined
  if (typeof has_more !== "boolean" || typeof is_consistent !== "boolean") return undefined
  return { body, cursor, has_more, is_consistent, schema, lag: Number(headers.get("x-changes-lag") ?? 0) }
}
