/** The options of the clients and of their requests, with their defaults. */

/** Sends a request, as the global `fetch` does. */
export type Fetch = (url: string, init: RequestInit) => Promise<Response>

/** One attempt of a request. */
export interface Attempt {
  /** Of the URL, such as `/api/v3/charges/search`. */
  readonly path: string
  /** 1 for the first attempt. */
  readonly attempt: number
  /** From sending the request to the end of its response. */
  readonly milliseconds: number
  /** Undefined if no response arrived. */
  readonly status: number | undefined
  readonly requestId: string | undefined
  /** The reason of a failure. It may be retried. */
  readonly error: unknown
}

/** Options that requests and clients have. */
interface CommonOptions {
  /** The timeout of each attempt, in milliseconds, for the whole response; by default 30000. */
  readonly timeout?: number | undefined
  /**
   * The number of retries of a request, by default 4: after 429, 503 and a gateway's 502 and 504, after a timeout and
   * after a broken connection. The delay is the `Retry-After` of the response, otherwise up to 0.5, 1, 2, 4 and then 8
   * seconds. Where `Retry-After` is more than 60 seconds, the request fails at once.
   */
  readonly maxRetries?: number | undefined
  /** More headers, such as `x-request-id`. */
  readonly headers?: Readonly<Record<string, string>> | undefined
}

/** Options of a request. They take precedence over those of the client. */
export interface RequestOptions extends CommonOptions {
  /** Aborts the request, its retries and the waits between them. The promise rejects with the reason of the signal. */
  readonly signal?: AbortSignal | undefined
}

/** Options of a walk of all pages. */
export interface AllOptions extends RequestOptions {
  /** The records of each page, from 2 to 1000, by default 1000; of the payment processor at most 100, the default. */
  readonly pageSize?: number | undefined
}

export interface ChangesOptions extends RequestOptions {
  /** The most changes of a page, records and removals together; by default 1000. */
  readonly limit?: number | undefined
  /** The seconds, at most 20, for which the service waits for a change; by default 0; with `follow` at least 1, by default 20. */
  readonly wait?: number | undefined
  /** Continues when there are no more changes yet, until the loop is left or the signal is aborted. */
  readonly follow?: boolean | undefined
}

export interface AllChangesOptions extends ChangesOptions {
  /** The names of resources, as in the API's paths; by default all. One that is new to the cursor begins with a reset. */
  readonly resources?: ReadonlyArray<string> | undefined
}

/** Options that both clients have. */
export interface ClientOptions extends CommonOptions {
  /** The address of the service, such as `https://practice-data.example`, with a path before `/api` if there is one. */
  readonly baseUrl: string
  /** Sends the requests, such as through a proxy. By default, `globalThis.fetch`. */
  readonly fetch?: Fetch | undefined
  /** Called after each attempt of a request, for a log or metrics. An error that it throws rejects the request. */
  readonly onAttempt?: ((attempt: Attempt) => void) | undefined
}

export interface Settings {
  readonly origin: string
  readonly fetch: Fetch
  readonly timeout: number
  readonly maxRetries: number
  readonly headers: Readonly<Record<string, string>>
  readonly onAttempt: ((attempt: Attempt) => void) | undefined
}

// Timers count to 2^31 milliseconds, and a response may be held back beyond the timeout.
const longestTimeout = 2_000_000_000

/** The address before `/api`. No message shows a URL, which may hold a password. */
const originOf = (baseUrl: string) => {
  const { hash, origin, password, pathname, protocol, search, username } = new URL(
    URL.canParse(baseUrl) ? baseUrl : "none:"
  )
  if (!/^https?:$/.test(protocol) || `${username}${password}${search}${hash}` !== "") {
    throw new TypeError("baseUrl must be an address such as https://practice-data.example, without a user or a query")
  }
  return `${origin}${pathname}`.replace(/\/+$/, "").replace(/\/api\/v[13]$/, "")
}

/** A text that a header can hold and keeps: without a space at its ends. It may be a secret, so no message shows it. */
export const printable = (name: string, text: string, longest: number) => {
  if (typeof text === "string" && text.length <= longest && /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(text))
    return text
  throw new TypeError(`${name} must have 1 to ${longest} printable ASCII characters, and no space at its ends`)
}

/** Throws if HTTP allows no such headers, which may hold a key: the error of `Headers` shows their values. */
const checkHeaders = (headers: Readonly<Record<string, string>>) => {
  const isAllowed = Object.entries(headers).every(
    ([name, value]) => /^[\w!#$%&'*+.^`|~-]+$/.test(name) && /^[\t\x20-\xff]*$/.test(value)
  )
  if (!isAllowed) throw new TypeError("headers has a name or a value that HTTP does not allow")
}

export const settingsWith = (
  settings: Settings,
  { headers, maxRetries = settings.maxRetries, timeout = settings.timeout }: RequestOptions
): Settings => {
  if (!(timeout > 0 && timeout <= longestTimeout)) {
    throw new RangeError(`timeout must be a number of milliseconds, more than 0 and at most ${longestTimeout}`)
  }
  if (!Number.isInteger(maxRetries) || maxRetries < 0) throw new RangeError("maxRetries must be an integer, 0 or more")
  if (headers) checkHeaders(headers)
  return { ...settings, timeout, maxRetries, headers: { ...settings.headers, ...headers } }
}

/** The settings of a client. Throws if an option is invalid. */
export const settingsOf = (options: ClientOptions): Settings => {
  const fetch: Fetch = options.fetch ?? ((url, init) => globalThis.fetch(url, init))
  const origin = originOf(options.baseUrl)
  const { onAttempt } = options
  return settingsWith({ origin, fetch, timeout: 30_000, maxRetries: 4, headers: {}, onAttempt }, options)
}
