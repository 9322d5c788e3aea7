/** Generated requests to the endpoints of records as bytes on a connection: well-formed, odd and hostile ones. */
import { Arbitrary, Array, Schema } from "effect"
import { integer, oneOf } from "../../support/arbitraries.ts"
import { keys } from "../../support/Client.ts"
import { type Endpoint, endpoints, recordEndpoints } from "../../contract/Contract.ts"
import { demo } from "../../support/inProcess.ts"
import type { Sent } from "./TwoWays.ts"

const literal = (...values: ReadonlyArray<string>) => Arbitrary.schema(Schema.Literals(values))

type Header = readonly [name: string, value: string]

/** A request. Its body has a character for each byte. */
interface Request {
  readonly method: string
  readonly path: string
  readonly version: string
  readonly headers: ReadonlyArray<Header>
  readonly body: string
}

/** A request as it should be. */
export const requestTo = (path: string, body: string, key: string = keys.oakridge): Request => ({
  method: "POST",
  path: `/api/v3${path}`,
  version: "1.1",
  headers: [
    ["Host", "a"],
    ["Authorization", `Bearer ${key}`],
    ["Content-Type", "application/json"],
    ["Content-Length", String(body.length)]
  ],
  body
})

/** The bytes of a request. */
export const textOf = ({ body, headers, method, path, version }: Request) =>
  [`${method} ${path} HTTP/${version}`, ...headers.map(([name, value]) => `${name}: ${value}`), "", body].join("\r\n")

/** A key that was revoked, which the test stores. */
export const revokedKey = "pda_live_revoked"

type Change = (request: Request) => Request

const without = (name: string, headers: ReadonlyArray<Header>) =>
  headers.filter(([other]) => other.toLowerCase() !== name.toLowerCase())

/** Has a header, once for each value, in the place of the same header. */
export const header =
  (name: string, ...values: ReadonlyArray<string>): Change =>
  (request) => ({
    ...request,
    headers: [...without(name, request.headers), ...values.map((value): Header => [name, value])]
  })

const names =
  (change: (name: string) => string): Change =>
  (request) => ({ ...request, headers: request.headers.map(([name, value]): Header => [change(name), value]) })

/** Changes a text of a request. */
const edit =
  (field: "method" | "path" | "version" | "body", change: (given: string) => string): Change =>
  (request) => ({ ...request, [field]: change(request[field]) })

/** Another body, whose length is told. */
export const rebodied =
  (change: (body: string) => string): Change =>
  (request) => {
    const body = change(request.body)
    return header("content-length", String(body.length))({ ...request, body })
  }

const chunked = (text: string) => {
  const half = text.length >> 1
  const parts = [text.slice(0, half), text.slice(half)].filter((part) => part !== "")
  return `${parts.map((part) => `${part.length.toString(16)}\r\n${part}\r\n`).join("")}0\r\n\r\n`
}

const both =
  (...changes: ReadonlyArray<Change>): Change =>
  (request) =>
    changes.reduce((changed, change) => change(changed), request)

/** Requests that have each of these values in a header. */
const each = (name: string, ...values: ReadonlyArray<string>) => values.map((value) => header(name, value))

const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
const [own, foreign] = [`Bearer ${keys.oakridge}`, `Bearer ${keys.harbor}`] as const
const schemes = ["bearer", "BEARER", "Bearer ", "Bearer  ", "Bearer\t", "Basic", "Bearer,", "BearerX", ""]
const http10 = edit("version", () => "1.0")

const changes: ReadonlyArray<Change> = [
  ...["GET", "PUT", "OPTIONS", "post"].map((method) => edit("method", () => method)),
  ...["?", "?a=b", "/", "#a"].map((end) => edit("path", (given) => given + end)),
  edit("path", (given) => `http://a${given}`),
  edit("path", (given) => given.replace("/v3/", "/v3//")),
  edit("path", (given) => given.replace("get", "%67et")),
  edit("path", (given) => given.toUpperCase()),
  http10,
  both(http10, header("connection", "keep-alive")),
  ...each("connection", "close", "keep-alive", "Close, x"),
  header("content-type"),
  ...each("content-type", " Application/JSON ; charset=latin1", "application/json;charset=utf-8"),
  ...each("content-type", "text/plain", "application/jsonl", ""),
  header("content-type", "application/json", "text/plain"),
  ...each("content-encoding", "gzip", "identity", " IDENTITY ", "", "gzip, identity"),
  both(header("content-length"), header("transfer-encoding", "chunked"), edit("body", chunked)),
  ...each("accept-encoding", "gzip", "zstd", "br", "identity", "*", "gzip;q=0.5, zstd;q=0", "identity;q=0", ""),
  header("accept-encoding", "identity", "gzip"),
  header("origin", "https://app.example"),
  ...each("traceparent", traceparent, "00-zz", ""),
  ...each("x-request-id", "id-1", "two words", "", "x".repeat(129), "\xe9", "pda_live_abcdefgh"),
  header("x-request-id", "id-1", "id-2"),
  header("user-agent", `${"a".repeat(300)}\xe9`),
  header("user-agent", "curl", "Bearer abc"),
  names((name) => name.toUpperCase()),
  names((name) => name.toLowerCase()),
  ...each("authorization", ...schemes.map((scheme) => `${scheme} ${keys.oakridge}`)),
  ...each("authorization", "Bearer", "Bearer ", `${own} x`, `${own},`, `${own}\xe9`, `${own}\t`),
  header("authorization"),
  header("authorization", own, foreign),
  header("authorization", foreign, own),
  header("cookie", "a=b", "c=d"),
  ...[" ", "\n", ",", "}", "\0", "\xef\xbb\xbf", "null"].map((more) => rebodied((given) => given + more)),
  ...["\xef\xbb\xbf", " \t\r\n", "[", "\xfe\xff"].map((more) => rebodied((given) => more + given)),
  rebodied(() => ""),
  rebodied((given) => given.replace(/"(\w)/, '"$1\xe9')),
  rebodied((given) => given.replace(/:"/, ':"\xe9')),
  rebodied((given) =>
    given.replaceAll(/"([a-z])/g, (_, letter: string) => `"\\u00${letter.charCodeAt(0).toString(16)}`)
  ),
  rebodied((given) => given.replace("{", `{"limit":1,"limit":2,`)),
  rebodied((given) => given.replace("{", `{"organization":"org_oakridge","\\u006frganization":null,`)),
  rebodied((given) => given + " ".repeat(9000))
]

const keyed = (index: number): Change => {
  const key = [keys.oakridge, keys.harbor, "pda_live_unknown", "pda_", revokedKey, "sk_unknown", "\xe9"][index]
  return key === undefined ? (request) => request : header("authorization", `Bearer ${key}`)
}

const stored: Readonly<Record<string, ReadonlyArray<{ readonly id: string }>>> = demo

const idsOf = ({ path: given }: Endpoint) => {
  const all = stored[given.split("/")[1] ?? ""] ?? []
  return literal(
    ...[all[0], all.at(-1)].map((record) => JSON.stringify(record?.id ?? "")),
    '" "',
    '"charge_harbor_0001"'
  )
}

/** The feed of all records, which is the first endpoint. */
const [feed] = endpoints

/** Each odd form of a request. */
export const odd = (request: Request) => changes.map((change) => textOf(change(request)))

/** The body of a request that finds something, or nearly so. */
const bodyOf = (endpoint: Endpoint) => {
  const more = literal(
    '"organization":"org_oakridge"',
    '"organization":"org_harbor"',
    '"organization":null',
    '"Limit":1',
    ...(endpoint.kind === "search"
      ? ['"offset":3', '"offset":-0', '"updated_at_since":"2026-01-10"', '"id":"none"', '"id":"\\u0000"']
      : ['"cursor":"none"', '"cursor":""', '"wait":0', '"wait":null', '"wait":21', '"wait":-1'])
  )
  const limit = literal("1", "5", "100", "1000", "1001", "0", "1.5", "null")
  const first =
    endpoint.kind === "get"
      ? Arbitrary.map(idsOf(endpoint), (id) => `"id":${id}`)
      : Arbitrary.map(limit, (most) => `"limit":${most}`)
  return Arbitrary.map(
    Arbitrary.all([first, Arbitrary.array(more, { maxLength: 2 })]),
    ([one, others]) => `{${[one, ...new Set(others)].join(",")}}`
  )
}

const anyChange = Arbitrary.map(integer(0, changes.length - 1), (index) => changes[index] ?? names(String))

/** True if the server closes the connection after its response. It would reset one on which more bytes arrive. */
const closes = ({ headers, version }: Request) => {
  const values = headers.filter(([name]) => /^connection$/i.test(name)).map(([, value]) => value)
  return values.some((value) => !/^keep-alive$/i.test(value)) || (version === "1.0" && values.length === 0)
}

const requestOf = (endpoint: Endpoint) =>
  Arbitrary.map(
    Arbitrary.all([bodyOf(endpoint), integer(-9, 6), Arbitrary.array(anyChange, { maxLength: 2 })]),
    ([text, index, all]) => both(keyed(index), ...all)(requestTo(endpoint.path, text))
  )

/** One to three requests on a connection, in one packet or in several. */
export const connection: Arbitrary.Arbitrary<Sent> = Arbitrary.map(
  Arbitrary.all([
    Arbitrary.array(oneOf(requestOf(feed), ...Array.map(recordEndpoints, requestOf)), { minLength: 1, maxLength: 3 }),
    Arbitrary.array(integer(0, 1000), { maxLength: 3 }),
    Arbitrary.schema(Schema.Boolean)
  ]),
  ([all, cuts, waits]) => {
    const closing = all.findIndex(closes)
    const requests = closing === -1 ? all : all.slice(0, closing + 1)
    const text = requests.map(textOf).join("")
    const places = cuts.map((cut) => Math.trunc((text.length * cut) / 1000)).toSorted((a, b) => a - b)
    const pieces = [...places, text.length].map((end, index) => text.slice(places[index - 1] ?? 0, end))
    return { pieces: pieces.filter((piece) => piece !== ""), waits, closes: closing !== -1 }
  }
)
