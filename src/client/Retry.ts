/** When a request is tried again, and how long it waits until then. */
import { ConnectionError, PracticeDataError, TimeoutError } from "./Errors.ts"

/** Statuses that may be another one the next time. 408, 502 and 504 are of a connection or a gateway. */
const retried = new Set([408, 429, 502, 503, 504])

const firstBackoff = 500
const longestBackoff = 8000

/** In seconds. Who is told to wait for longer is not kept waiting. */
const longestRetryAfter = 60

/** Full jitter over a backoff that doubles, in milliseconds. */
const backoff = (retries: number) => Math.random() * Math.min(longestBackoff, firstBackoff * 2 ** retries)

/** For how many milliseconds to wait after a failure, never less than the response said; undefined: not to try again. */
const delayAfter = (error: unknown, retries: number): number | undefined => {
  if (error instanceof ConnectionError || error instanceof TimeoutError) return backoff(retries)
  if (!(error instanceof PracticeDataError) || !retried.has(error.status ?? 0)) return undefined
  const { retryAfter = 0 } = error
  return retryAfter > longestRetryAfter ? undefined : retryAfter * 1000 + backoff(retries)
}

/** Settles as the work does, or rejects with the reason of the signal as soon as it is aborted. */
export const abortable = <A>(work: Promise<A>, signal: AbortSignal | undefined): Promise<A> => {
  if (signal === undefined) return work
  return new Promise<A>((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener("abort", abort, { once: true })
    void work.then(resolve, reject).finally(() => signal.removeEventListener("abort", abort))
  })
}

/** Waits for some milliseconds. */
export const pause = async (millis: number, signal: AbortSignal | undefined): Promise<void> => {
  let timer: ReturnType<typeof setTimeout> | undefined
  const elapsed = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, millis)
  })
  await abortable(elapsed, signal).finally(() => clearTimeout(timer))
}

/** Tries until it succeeds, fails for good, or has been tried again as often as it may. */
export const withRetries = async <A>(
  attempt: () => Promise<A>,
  maxRetries: number,
  signal: AbortSignal | undefined
): Promise<A> => {
  for (let retries = 0; ; retries += 1) {
    signal?.throwIfAborted()
    try {
      return await attempt()
    } catch (error) {
      const delay = retries < maxRetries ? delayAfter(error, retries) : undefined
      if (delay === undefined) throw error
      await pause(delay, signal)
    }
  }
}
