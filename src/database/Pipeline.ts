/**
 * Connections that short reads share: each is sent without waiting for the answers to those before it, and those of one
 * turn of the event loop in one write. That costs less than a connection for each, here and in the database.
 *
 * Answers come in the order of the statements, so a slow one delays those behind it. The caller retries slow or failed
 * statements on a dedicated connection; after a slow one, nothing is sent this way for a while.
 */
import type { SharedConnection } from "./SharedConnection.ts"

/**
 * The most unanswered statements of a connection. The database answers pages faster than this process sends them on, so
 * one of its processes is enough for so many, and another would take the core that this one needs: with 8, pages of 100
 * for 16 clients are a fifteenth fewer, measured on two cores.
 */
const depth = 16

/** Statements that a connection takes before all are answered: until then, the client keeps the rows of each. */
const batch = 64

/** The time to wait for an answer, in milliseconds. */
export const longestWait = 100

/** The time without pipelining after a statement that took longer, in milliseconds. */
const pause = 1000

export const make = (shared: ReadonlyArray<SharedConnection>) => {
  let sending: Array<() => void> = []
  const sendAll = () => {
    const all = sending
    sending = []
    for (const send of all) send()
  }
  /** Sends a statement at the end of this turn of the event loop. */
  const send = (one: () => void) => {
    // The client writes before the next microtask, and each request arrives in a task of its own.
    if (sending.push(one) === 1) setImmediate(sendAll)
  }
  const connections = shared.map(({ run }) => {
    const state = {
      run,
      send,
      unanswered: 0,
      /** Since none was unanswered. */
      taken: 0,
      /** Must be called when the statement has ended in any way, or is not to be sent. */
      answered: () => {
        state.unanswered -= 1
        if (state.unanswered === 0) state.taken = 0
      }
    }
    return state
  })
  let restsUntil = -Infinity
  return {
    size: connections.length,
    busy: () => connections.filter(({ unanswered }) => unanswered > 0).length,
    /** A connection for a statement; undefined where none has room. `now` is the monotonic clock, in milliseconds. */
    take: (now: number) => {
      if (now < restsUntil) return undefined
      const connection = connections.find(({ taken, unanswered }) => unanswered < depth && taken < batch)
      if (connection === undefined) return undefined
      connection.unanswered += 1
      connection.taken += 1
      return connection
    },
    rest: (now: number) => {
      restsUntil = now + pause
    }
  }
}

export type Pipeline = ReturnType<typeof make>
