/**
 * Who may take a connection next. The connections of a pool are shared between keys (an API key, an organization), so
 * that none of them, whatever it asks for, keeps the others waiting for long.
 *
 * A key takes another connection only while it holds fewer than are free: of ten, one key alone gets five, a second one
 * three, and something is left for a third. Keys that wait are served in turn. Nothing is kept of a key that neither
 * holds nor waits.
 */

/** How many connections a key may hold, of all, while so many are free. */
export type Share = (free: number, permits: number) => number

/** As many as are left free. */
export const fair: Share = (free) => free

/** As many as are left free, and never more than a number. */
export const atMost =
  (most: number): Share =>
  (free) =>
    Math.min(most, free)

/** All but two. */
export const nearlyAll: Share = (_, permits) => Math.max(1, permits - 2)

/** Someone who wants a connection. */
export interface Applicant {
  readonly key: string
  readonly share: Share
  /** Called once, when a connection is granted to someone who had to wait. */
  readonly granted: () => void
}

export interface Options {
  /** How many connections there are. */
  readonly permits: number
  /** How many applicants of one key may wait. */
  readonly waitingPerKey: number
  /** How many applicants may wait in all. */
  readonly waiting: number
}

export interface Admission {
  /** Applies for a connection: granted at once, to be waited for, or refused since too many wait. */
  readonly apply: (applicant: Applicant) => "granted" | "waits" | "refused"
  /** Waits no longer. Does nothing for who does not wait. */
  readonly withdraw: (applicant: Applicant) => void
  /** Gives back a connection that was granted to a key. */
  readonly release: (key: string) => void
  /** How many connections are free, how many applicants wait, and how many keys are known. */
  readonly stats: () => { readonly free: number; readonly waiting: number; readonly keys: number }
}

export const make = ({ permits, waiting: maximumWaiting, waitingPerKey }: Options): Admission => {
  let free = permits
  let waitingCount = 0
  const held = new Map<string, number>()
  // In the order in which the keys have their turns.
  const waiting = new Map<string, Set<Applicant>>()
  let isServing = false
  let isServedAgain = false

  const mayTake = ({ key, share }: Applicant) => free > 0 && (held.get(key) ?? 0) < share(free, permits)

  const take = (key: string) => {
    free--
    held.set(key, (held.get(key) ?? 0) + 1)
  }

  const withdraw = (applicant: Applicant) => {
    const queue = waiting.get(applicant.key)
    if (queue?.delete(applicant) !== true) return
    waitingCount--
    if (queue.size === 0) waiting.delete(applicant.key)
  }

  const serveEachInTurn = () => {
    for (const [key, queue] of waiting) {
      if (free === 0) return
      const [first] = queue
      if (first === undefined || !mayTake(first)) continue
      withdraw(first)
      // The others of this key come after all other keys, which this loop gets to as well.
      if (waiting.delete(key)) waiting.set(key, queue)
      take(key)
      first.granted()
    }
  }

  const serve = () => {
    isServedAgain = true
    // Whoever is granted a connection may give it back at once.
    if (isServing) return
    isServing = true
    while (isServedAgain) {
      isServedAgain = false
      serveEachInTurn()
    }
    isServing = false
  }

  return {
    apply: (applicant) => {
      if (mayTake(applicant)) {
        take(applicant.key)
        return "granted"
      }
      const queue = waiting.get(applicant.key)
      if (waitingCount >= maximumWaiting || (queue?.size ?? 0) >= waitingPerKey) return "refused"
      waitingCount++
      if (queue === undefined) waiting.set(applicant.key, new Set([applicant]))
      else queue.add(applicant)
      return "waits"
    },
    withdraw,
    release: (key) => {
      const count = held.get(key) ?? 0
      if (count === 0) return
      if (count === 1) held.delete(key)
      else held.set(key, count - 1)
      free++
      if (waitingCount > 0) serve()
    },
    stats: () => ({ free, waiting: waitingCount, keys: new Set([...held.keys(), ...waiting.keys()]).size })
  }
}
