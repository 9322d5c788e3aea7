/** Deadlines of one length, with one timer for all: a timer of its own is a fiber for each short read. */
import { type Clock, Duration, Effect } from "effect"
import * as Time from "../process/Time.ts"

export interface Deadline {
  readonly at: number
  /** Undefined once it has ended. */
  expired: (() => void) | undefined
}

/** @param millis the length */
export const make = (clock: Clock.Clock, millis: number) => {
  // In the order in which they end. Not a set: V8 would keep what was in it for long, and collect it with the old objects.
  const pending: Array<Deadline> = []
  let isArmed = false

  const arm = (delay: number) => {
    isArmed = true
    Effect.runFork(Effect.map(clock.sleep(Duration.millis(delay)), expire))
  }

  const first = () => {
    while (pending[0]?.expired === undefined && pending.length > 0) pending.shift()
    return pending[0]
  }

  const expire = () => {
    isArmed = false
    const now = Time.monotonicOf(clock)
    for (let deadline = first(); deadline !== undefined; deadline = first()) {
      if (deadline.at > now) return arm(deadline.at - now)
      const { expired } = deadline
      deadline.expired = undefined
      expired?.()
    }
  }

  return {
    /** @param now the monotonic time, in milliseconds */
    add: (now: number, expired: () => void): Deadline => {
      const deadline = { at: now + millis, expired }
      pending.push(deadline)
      if (!isArmed) arm(millis)
      return deadline
    },
    remove: (deadline: Deadline) => {
      deadline.expired = undefined
      first()
    }
  }
}
