/** Requests of the data API, and what their responses have to be. */
import { isObject, stringify } from "./Json.ts"
import type { ChangesPage } from "./generated/types.ts"
import type { RequestOptions, Settings } from "./Options.ts"
import { send } from "./Send.ts"

/** Posts to an endpoint of the data API. */
export type Post = <A>(
  path: string,
  body: object,
  read: (json: unknown, headers: Headers) => A | undefined,
  options?: RequestOptions,
  held?: number
) => Promise<A>

/** Posts with an API key. */
export const postWith =
  (settings: Settings, apiKey: string): Post =>
  async (path, body, read, options, held = 0) => {
    const headers = () => Promise.resolve({ authorization: `Bearer ${apiKey}` })
    return send(settings, { path: `/api/v3${path}`, body: stringify(body), headers, read, held }, options)
  }

// The service is trusted to give records that are as its OpenAPI document says.
const isRecord = <Item>(value: unknown): value is Item => isObject(value)

const isRecords = <Item>(value: unknown): value is Array<Item> =>
  Array.isArray(value) && value.every((item) => isRecord(item))

const isTexts = (value: unknown): value is Array<string> =>
  Array.isArray(value) && value.every((item) => typeof item === "string")

/** Reads a record, which has an id of this name. */
export const readRecord =
  <Item>(id: string) =>
  (json: unknown): Item | undefined =>
    isObject(json) && typeof json[id] === "string" && isRecord<Item>(json) ? json : undefined

/** The records of a page of a search. */
export const readBody = <Item>(json: unknown): Array<Item> | undefined =>
  isObject(json) && isRecords<Item>(json["body"]) ? json["body"] : undefined

/** A page of the payment processor. */
export const readLive = <Item>(json: unknown): { data: Array<Item>; has_more: boolean } | undefined =>
  isObject(json) && isRecords<Item>(json["data"]) && typeof json["has_more"] === "boolean"
    ? { data: json["data"], has_more: json["has_more"] }
    : undefined

/** A page of changes. */
export const readChanges = <Item>(json: unknown, headers: Headers): ChangesPage<Item> | undefined => {
  if (!isObject(json)) return undefined
  const { body, cursor, has_more, removed } = json
  const isPage =
    isRecords<Item>(body) && isTexts(removed) && typeof cursor === "string" && typeof has_more === "boolean"
  if (!isPage) return undefined
  const lag = Number(headers.get("x-changes-lag") ?? 0)
  // A service that is older than the header is known to have told everything only while nothing is held back.
  const complete = (headers.get("x-changes-complete") ?? `${lag === 0}`) === "true"
  return { body, removed, cursor, has_more, lag, complete }
}
