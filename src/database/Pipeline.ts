/**
 * Connections that short reads share: each is sent without waiting for the answers to those before it, and those of one
 * turn of the event loop in one write. That costs less than a connection for each, here and in the database.
 *
 * Answers come in the order of the statements, so one that takes long keeps those behind it waiting. What has no answer
 * soon is for its caller to run on a connection of its own, and so is what fails; after one that took long, nothing is
 * sent this way for a while.
 *
 * The client keeps the rows of answered statements until none is left unanswered. So each connection takes a number of
 * statements, and then none until all are answered, while the others take theirs.
 */
import type { SharedConnection } from "./SharedConnection.ts"

/**
 * How many statements a connection has unanswered at most. The database answers pages faster than this process sends
 * them on, so one of its processes is enough for so many, and another would take the core that this one needs: with 8,
 * pages of 100 for 16 clients are a fifteenth fewer, measured on two cores.
 */
const depth = 16

/** How many statements a connection takes before all of them are answered. */
const batch = 64

/** How long to wait for an answer, in milliseconds. */
export const longestWait = 100

/** For how long no connection is given after a statement that took longer, in milliseconds. */
const pause = 1000

/** A connection that was given for one statement. */
export interface Connection extends SharedConnection {
  /** Calls what sends the statement, at the end of this turn of the event loop. */
  readonly send: (send: () => void) => void
  /** To be called when the statement has ended, however it did, or is not to be sent. */
  readonly answered: () => void
}

export interface Pipeline {
  /** How many connections it has. */
  readonly size: number
  /** How many of them have a statement to answer. */
  readonly busy: () => number
  /**
   * A connection for a statement; undefined where there is none now.
   *
   * @param now the monotonic clock, in milliseconds
   */
  readonly take: (now: number) => Connection | undefined
  /** Gives no connection for a while from now on. */
  readonly rest: (now: number) => void
}

export const make = (shared: ReadonlyArray<SharedConnection>): Pipeline => {
  let sending: Array<() => void> = []
  const sendAll = () => {
    const all = sending
    sending = []
    for (const send of all) send()
  }
  // The client writes at once what it is given before the next microtask, and each request arrives in a task of its own.
  const send = (one: () => void) => {
    if (sending.push(one) === 1) setImmediate(sendAll)
  }
  const connections = shared.map(({ run }) => {
    const state = {
      run,
      send,
      unanswered: 0,
      /** Since none was unanswered. */
      taken: 0,
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
    take: (now) => {
      if (now < restsUntil) return undefined
      const connection = connections.find(({ taken, unanswered }) => unanswered < depth && taken < batch)
      if (connection === undefined) return undefined
      connection.unanswered += 1
      connection.taken += 1
      return connection
    },
    rest: (now) => {
      restsUntil = now + pause
    }
  }
}
