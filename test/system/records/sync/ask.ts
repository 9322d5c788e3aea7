/**
 * How a client of the data API asks: the same request again while the service is busy or cannot be reached. Plain
 * TypeScript, as a reader of the documentation may write it.
 */
// oxlint-disable effecttsgo/async-function, effecttsgo/global-fetch, effecttsgo/global-timers, effecttsgo/new-promise, effecttsgo/prefer-schema-over-json, eslint/no-await-in-loop -- for clients that have no Effect
const seconds = (count: number) => new Promise((resolve) => setTimeout(resolve, count * 1000))

/** Asks an endpoint. */
export type Ask = (path: string, request: object) => Promise<Response>

export const connect =
  (address: string, key: string): Ask =>
  async (path, request) => {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
    for (;;) {
      const body = JSON.stringify(request)
      const signal = AbortSignal.timeout(60_000)
      const response = await fetch(`${address}/api/v3${path}`, { method: "POST", headers, body, signal }).catch(
        () => undefined
      )
      if (response !== undefined && response.status !== 503 && response.status !== 429) return response
      await seconds(Number(response?.headers.get("retry-after") ?? 1))
    }
  }

/** A record. */
export interface Row {
  readonly id: string
  readonly [field: string]: unknown
}

/** The body of a response, which must be one. */
export const bodyOf = async (response: Response) => {
  const text = await response.text()
  if (response.status !== 200) throw new Error(`${response.status} ${text}`)
  return JSON.parse(text)
}
