/**
 * Fair sharing of a pool's connections between keys, such as API keys and organizations.
 *
 * A key takes another connection only while it holds fewer than are free: of ten, one key alone gets five, a second one
 * three, and something is left for a third. Waiting keys are served in turn.
 */

/** The number of connections that a key may hold, of all, while so many are free. */
export type Share = (free: number, permits: number) => number

/** As many as are left free. */
export const fair: Share = (free) => free

export const atMost =
  (most: number): Share =>
  (free) =>
    Math.min(most, free)

export const nearlyAll: Share = (_, permits) => Math.max(1, permits - 2)

export interface Waiter {
  readonly key: string
  readonly share: Share
  /** Called once, when a queued waiter has its connection. */
  readonly start: () => void
}

/** The number of connections, and the most queued waiters of all keys and of one. */
type Limits = Readonly<Record<"permits" | "waiting" | "waitingPerKey", number>>

export const make = ({ permits, waiting: maximumWaiting, waitingPerKey }: Limits) => {
  let free = permits
  let waitingCount = 0
  const held = new Map<string, number>()
  // In the order in which the keys have their turns.
  const waiting = new Map<string, Set<Waiter>>()
  let isServing = false

  const mayTake = ({ key, share }: Waiter) => free > 0 && (held.get(key) ?? 0) < share(free, permits)

  const take = (key: string) => {
    free--
    held.set(key, (held.get(key) ?? 0) + 1)
  }

  /** Does nothing for a waiter that is not queued. */
  const withdraw = (waiter: Waiter) => {
    const queue = waiting.get(waiter.key)
    if (queue?.delete(waiter) !== true) return
    waitingCount--
    if (queue.size === 0) waiting.delete(waiter.key)
  }

  /** Takes the next waiter that may have a connection out of its queue. */
  const next = () => {
    if (free === 0) return undefined
    for (const [key, queue] of waiting) {
      const [first] = queue
      if (first === undefined || !mayTake(first)) continue
      withdraw(first)
      // The others of this key come after all other keys.
      if (waiting.delete(key)) waiting.set(key, queue)
      return first
    }
    return undefined
  }

  const serve = () => {
    // A waiter that gets a connection may give it back at once.
    if (isServing) return
    isServing = true
    for (let waiter = next(); waiter !== undefined; waiter = next()) {
      take(waiter.key)
      waiter.start()
    }
    isServing = false
  }

  return {
    /** Refuses a waiter where too many are queued. */
    request: (waiter: Waiter): "taken" | "queued" | "refused" => {
      if (mayTake(waiter)) {
        take(waiter.key)
        return "taken"
      }
      const queue = waiting.get(waiter.key) ?? new Set()
      if (waitingCount >= maximumWaiting || queue.size >= waitingPerKey) return "refused"
      waitingCount++
      waiting.set(waiter.key, queue.add(waiter))
      return "queued"
    },
    withdraw,
    release: (key: string) => {
      const count = held.get(key) ?? 0
      if (count <= 1) held.delete(key)
      else held.set(key, count - 1)
      free++
      if (waitingCount > 0) serve()
    },
    stats: () => ({ free, waiting: waitingCount, keys: new Set([...held.keys(), ...waiting.keys()]).size })
  }
}

export type Admission = ReturnType<typeof make>
