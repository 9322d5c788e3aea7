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

/** A request for a connection. */
export interface Waiter {
  readonly key: string
  readonly share: Share
  /** Called once, when a waiter that was queued has its connection. */
  readonly start: () => void
}

export interface Options {
  /** How many connections there are. */
  readonly permits: number
  /** How many waiters of one key may be queued. */
  readonly waitingPerKey: number
  /** How many waiters may be queued in all. */
  readonly waiting: number
}

export interface Admission {
  /** Requests a connection: taken at once, queued for, or refused since too many are queued. */
  readonly request: (waiter: Waiter) => "taken" | "queued" | "refused"
  /** Leaves the queue. Does nothing for a waiter that is not queued. */
  readonly withdraw: (waiter: Waiter) => void
  /** Gives back a connection that a key has taken. */
  readonly release: (key: string) => void
  /** How many connections are free, how many waiters are queued, and how many keys are known. */
  readonly stats: () => { readonly free: number; readonly waiting: number; readonly keys: number }
}

export const make = ({ permits, waiting: maximumWaiting, waitingPerKey }: Options): Admission => {
  let free = permits
  let waitingCount = 0
  const held = new Map<string, number>()
  // In the order in which the keys have their turns.
  const waiting = new Map<string, Set<Waiter>>()
  let isServing = false
  let isServedAgain = false

  const mayTake = ({ key, share }: Waiter) => free > 0 && (held.get(key) ?? 0) < share(free, permits)

  const take = (key: string) => {
    free--
    held.set(key, (held.get(key) ?? 0) + 1)
  }

  const withdraw = (waiter: Waiter) => {
    const queue = waiting.get(waiter.key)
    if (queue?.delete(waiter) !== true) return
    waitingCount--
    if (queue.size === 0) waiting.delete(waiter.key)
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
      first.start()
    }
  }

  const serve = () => {
    isServedAgain = true
    // Whoever gets a connection may give it back at once.
    if (isServing) return
    isServing = true
    while (isServedAgain) {
      isServedAgain = false
      serveEachInTurn()
    }
    isServing = false
  }

  return {
    request: (waiter) => {
      if (mayTake(waiter)) {
        take(waiter.key)
        return "taken"
      }
      const queue = waiting.get(waiter.key)
      if (waitingCount >= maximumWaiting || (queue?.size ?? 0) >= waitingPerKey) return "refused"
      waitingCount++
      if (queue === undefined) waiting.set(waiter.key, new Set([waiter]))
      else queue.add(waiter)
      return "queued"
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
