/**
 * Divides the event loop among requests and new connections. In each of its turns it accepts one connection, and calls
 * back for every request that has arrived: behind hundreds of them in each turn, a new client would wait for seconds.
 */

/** The requests that begin as they arrive in a turn, and those that begin at its end. They take some milliseconds. */
const most = 16

/** Milliseconds in which none begins while each turn has a new connection: more wait behind it. */
const accepting = 20

export class Turns {
  /** The requests that wait, by the API keys of their senders. */
  readonly #waiting = new Map<string, Array<() => void>>()
  #begun = 0
  /** 2 in a turn with a new connection, 1 in the next one. */
  #accepts = 0
  #lastBegun = 0
  #isScheduled = false

  /** Notes a new connection. */
  accept() {
    this.#accepts = 2
    this.#schedule()
  }

  /**
   * Tells if a request may begin as it arrives. Otherwise it has to wait. The count is of several turns where few arrive:
   * to end each turn would cost more than the turn of every 17th request.
   */
  isFree(): boolean {
    if (this.#accepts > 0 || this.#waiting.size > 0) return false
    this.#begun += 1
    if (this.#begun > most) this.#schedule()
    return this.#begun <= most
  }

  wait(sender: string, begin: () => void) {
    const waiting = this.#waiting.get(sender)
    if (waiting === undefined) this.#waiting.set(sender, [begin])
    else waiting.push(begin)
    this.#schedule()
  }

  #schedule() {
    if (this.#isScheduled) return
    this.#isScheduled = true
    setImmediate(this.#turn)
  }

  readonly #turn = () => {
    const now = performance.now()
    const isAccepting = this.#accepts === 2 && now - this.#lastBegun < accepting
    this.#isScheduled = false
    this.#begun = 0
    if (this.#accepts > 0) this.#accepts -= 1
    if (!isAccepting) {
      this.#lastBegun = now
      this.#begin()
    }
    if (this.#accepts > 0 || this.#waiting.size > 0) this.#schedule()
  }

  #begin() {
    let left = most
    for (const [sender, waiting] of this.#waiting) {
      if (left-- <= 0) return
      // The next one of this sender comes after those of the others.
      this.#waiting.delete(sender)
      const begin = waiting.shift()
      if (waiting.length > 0) this.#waiting.set(sender, waiting)
      begin?.()
    }
  }
}
