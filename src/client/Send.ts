/** Sends a request until there is a response, and reads it. */
import { exchange, type Reply } from "./Exchange.ts"
import { failureOf, type Subject, unexpected } from "./Failure.ts"
import { version } from "./generated/version.ts"
import { parse } from "./Json.ts"
import { type RequestOptions, type Settings, settingsWith } from "./Options.ts"
import { withRetries } from "./Retry.ts"

/** A request. */
export interface Sent<A> extends Subject {
  readonly body: string
  /** The headers of a try. */
  readonly headers: () => Promise<Readonly<Record<string, string>>>
  /** What the body of a success says; undefined where it is not such a body. */
  readonly read: (json: unknown, headers: Headers) => A | undefined
  /** For how many milliseconds the service may hold the response back, beyond the timeout. */
  readonly held?: number
}

const resultOf = <A>(sent: Sent<A>, reply: Reply): A => {
  const { status, text } = reply
  if (status >= 400) throw failureOf(sent, reply)
  const result = status >= 200 && status < 300 ? sent.read(parse(text), reply.headers) : undefined
  if (result === undefined) throw unexpected(sent, reply)
  return result
}

/** Sends a request, and again where that may help. */
export const send = async <A>(settings: Settings, sent: Sent<A>, options: RequestOptions = {}): Promise<A> => {
  const { fetch, headers: more, maxRetries, origin, timeout } = settingsWith(settings, options)
  const { signal } = options
  const attempt = async () => {
    const headers = new Headers({
      accept: "application/json",
      "user-agent": `practice-data/${version}`,
      ...more,
      "content-type": "application/json",
      ...(await sent.headers())
    })
    const request = { url: `${origin}${sent.path}`, headers, body: sent.body, idempotencyKey: sent.idempotencyKey }
    return resultOf(sent, await exchange(fetch, request, timeout + (sent.held ?? 0), signal))
  }
  return withRetries(attempt, maxRetries, signal)
}
