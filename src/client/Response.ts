/** Reads responses: results, which can also show their response, and errors by their status. */
import * as Errors from "./Errors.ts"
import type { AllChanges, ChangesPage, LivePage, ValidationError } from "./generated/types.ts"

/** A result with the response that held it. */
export interface WithResponse<A> {
  readonly data: A
  readonly status: number
  readonly headers: Headers
  /** The id of the request, which the logs of the service name. */
  readonly requestId: string | undefined
}

export interface Answer<A> extends Promise<A> {
  /**
   * The result with its response.
   *
   * @example
   * const { data, headers, requestId } = await client.charges.get("charge_1").withResponse()
   */
  readonly withResponse: () => Promise<WithResponse<A>>
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

/** Reads the body of a success. Undefined: it is not such a body. */
export type Read<A> = (json: unknown, headers: Headers) => A | undefined

/** A request, of which messages name the path. */
export interface ApiRequest<A> {
  readonly path: string
  readonly idempotencyKey?: string | undefined
  readonly body: object
  /** The headers of an attempt, which may sign the text of the body. */
  readonly headers: (body: string) => Promise<Readonly<Record<string, string>>>
  readonly read: Read<A>
  /** The milliseconds for which the service may hold the response back, beyond the timeout. */
  readonly held?: number
  /** Called with the headers of a success, before its body has come. */
  readonly onHeaders?: (headers: Headers) => void
}

export const isText = (value: unknown): value is string => typeof value === "string"

const isFlag = (value: unknown) => typeof value === "boolean"

const isListOf = <Item>(value: unknown, is: (item: unknown) => item is Item): value is Array<Item> =>
  Array.isArray(value) && value.every(is)

const isFault = (value: unknown): value is ValidationError =>
  isObject(value) && Array.isArray(value["loc"]) && isText(value["msg"]) && isText(value["type"])

const summaryOf = (faults: ReadonlyArray<ValidationError>) => {
  const texts = faults.slice(0, 3).map(({ loc, msg }) => `${loc.join(".")}: ${msg}`)
  if (faults.length > 3) texts.push(`and ${faults.length - 3} more`)
  return texts.join("; ")
}

/** In seconds; of a date, from that of the response on: the clock of this machine may be wrong. */
const retryAfterOf = (headers: Headers) => {
  const value = headers.get("retry-after") ?? ""
  if (/^\d+(\.\d+)?$/.test(value)) return Number(value)
  // oxlint-disable-next-line eslint/no-restricted-properties -- a date, where the response has none
  const seconds = (Date.parse(value) - (Date.parse(headers.get("date") ?? "") || Date.now())) / 1000
  return Number.isNaN(seconds) ? undefined : Math.max(0, Math.ceil(seconds))
}

const classes = new Map([
  [400, Errors.BadRequestError],
  [401, Errors.AuthenticationError],
  [404, Errors.NotFoundError],
  [410, Errors.CursorExpiredError],
  [429, Errors.RateLimitError],
  [503, Errors.ServiceUnavailableError]
])

/** The result of a response from an address. Throws the error of any other than a success. */
export const resultOf = <A>(
  url: string,
  { idempotencyKey, path, read }: ApiRequest<A>,
  reply: WithResponse<string>
): A => {
  const { headers, requestId, status } = reply
  const json = parse(reply.data)
  const result = status >= 200 && status < 300 ? read(json, headers) : undefined
  if (result !== undefined) return result
  const body = isObject(json) ? json : {}
  const code = headers.get("x-error") ?? undefined
  const details = { status, requestId, code, retryAfter: retryAfterOf(headers), idempotencyKey }
  const messageOf = (from: string, text: string) =>
    `${status} from ${from}: ${text}${requestId === undefined ? "" : ` (request ${requestId})`}`
  // A header of every error of the service's endpoints.
  const isOurs = headers.get("x-service") === "practice-data"
  if (isOurs && status === 422 && isListOf(body["detail"], isFault)) {
    const detail = summaryOf(body["detail"])
    throw new Errors.InvalidRequestError(messageOf(path, detail), { ...details, detail }, body["detail"])
  }
  // The intake's 503 has the body of a receipt.
  const said = code === "intake_unavailable" ? "The delivery was not stored" : body["detail"]
  const detail = isText(said) ? said : undefined
  // The body of another response may hold records, which no log may show.
  const other = `not a response of Practice Data, but ${headers.get("content-type") ?? "one without a type"}`
  // A program may take a 404 for a record that is gone, so the service itself has to say so.
  if (status >= 500 || status === 429 || (status >= 400 && isOurs && detail !== undefined)) {
    const Class = classes.get(status) ?? (status >= 500 ? Errors.ServerError : Errors.PracticeDataError)
    throw new Class(messageOf(path, detail ?? other), { ...details, detail })
  }
  // A browser hides where a redirect leads: its status is 0.
  const location = headers.get("location") ?? (status === 0 ? "another address" : null)
  const what = location === null ? other : `a redirect to ${location}, which is not followed`
  const advice = "Check the base URL, which ends before /api, and any proxy in between"
  throw new Errors.UnexpectedResponseError(messageOf(url, `${what}. ${advice}`), details)
}

/** Reads an object with these fields, and more from the headers. The service is trusted for the other fields. */
export const reading =
  <A>(
    fields: Readonly<Record<string, (value: unknown) => boolean>>,
    more: (headers: Headers) => object = () => ({})
  ): Read<A> =>
  (json, headers) => {
    const is = (value: unknown): value is A =>
      isObject(value) && Object.entries(fields).every(([name, isValid]) => isValid(value[name]))
    const value = isObject(json) ? { ...json, ...more(headers) } : undefined
    return is(value) ? value : undefined
  }

const isList = (value: unknown) => isListOf(value, isObject)

const lagOf = (headers: Headers) => ({ lag: Number(headers.get("x-changes-lag") ?? 0) })

const page = { cursor: isText, has_more: isFlag }

export const readRecord = <Item>(id: string): Read<Item> => reading({ [id]: isText })

/** Reads the list of a page, without what stands beside it. */
export const readList = <Item>(field: "body" | "data"): Read<Array<Item>> => {
  const read = reading<Readonly<Record<typeof field, Array<Item>>>>({ [field]: isList })
  return (json, headers) => read(json, headers)?.[field]
}

export const readLive = <Item>(): Read<LivePage<Item>> => reading({ data: isList, has_more: isFlag })

export const readChanges = <Item>(): Read<ChangesPage<Item>> =>
  reading({ ...page, body: isList, removed: (value) => isListOf(value, isText) }, (headers) => ({
    ...lagOf(headers),
    complete: headers.get("x-changes-complete") === "true"
  }))

export const readAllChanges: Read<AllChanges> = reading(
  { ...page, body: isList, schema: isText, is_consistent: isFlag },
  lagOf
)
