/**
 * Circuit breakers by key: after so many failures in a row the circuit of a key opens, and its calls are refused for a
 * while, so that what is broken costs its callers nothing. Then calls are tried, and the first that succeeds closes it.
 *
 * Trials are paced, not exclusive: when one has not been answered after a moment, the next caller makes another. The
 * breaker of `effect/persistence` keeps everyone out until its one trial ends. There a trial that hangs shuts the door
 * for as long as its deadline, and with a short deadline a slow processor would never be let in again. It also counts no
 * call that was interrupted, and does not say when it lets the next one through while a trial runs.
 */
import { Duration } from "effect"

/** How the circuits break. */
export interface Options {
  /** How many failures in a row open a circuit. */
  readonly failures: number
  /** For how long an open circuit refuses every call. */
  readonly pause: Duration.Duration
  /** How long a trial may take before there is another one. */
  readonly trial: Duration.Duration
  /** How many circuits with failures are kept at most; past it, the one that failed longest ago is forgotten. */
  readonly circuits: number
}

/** That a call may be made, to be handed back with its outcome. */
export interface Permit {
  /** Which time of being open or closed it belongs to: an outcome from before says nothing about now. */
  readonly generation: number
  readonly isTrial: boolean
}

interface Circuit {
  readonly failures: number
  readonly generation: number
  /** When the next call may be made; undefined while the circuit is closed. */
  readonly nextAt: number | undefined
}

/** No failures. All circuits like it are the same, and none of them is kept. */
const sound: Circuit = { failures: 0, generation: 0, nextAt: undefined }

export interface CircuitBreaker {
  /** Whether calls of a key are being refused, trials aside. */
  readonly isOpen: (key: string) => boolean
  /** Milliseconds until a call of a key may be made; 0 when it may be made now. */
  readonly untilNext: (key: string, now: number) => number
  /** Takes note that a call is being made, which `untilNext` has to allow. */
  readonly admit: (key: string, now: number) => Permit
  /** Takes note that a call was answered. Whether that closes the circuit. */
  readonly succeed: (key: string, permit: Permit) => boolean
  /** Takes note that a call failed. Whether that opens the circuit, which was closed. */
  readonly fail: (key: string, permit: Permit, now: number) => boolean
}

/** Closed circuits. Times are milliseconds of one clock, whichever. */
export const make = (options: Options): CircuitBreaker => {
  const pause = Duration.toMillis(options.pause)
  const trial = Duration.toMillis(options.trial)
  const circuits = new Map<string, Circuit>()
  let generations = 0

  const of = (key: string) => circuits.get(key) ?? sound

  const keep = (key: string, circuit: Circuit) => {
    circuits.delete(key)
    circuits.set(key, circuit)
    const [oldest] = circuits.keys()
    if (circuits.size > options.circuits && oldest !== undefined) circuits.delete(oldest)
  }

  return {
    isOpen: (key) => of(key).nextAt !== undefined,
    untilNext: (key, now) => Math.max(0, (of(key).nextAt ?? now) - now),
    admit: (key, now) => {
      const circuit = of(key)
      const isTrial = circuit.nextAt !== undefined
      if (isTrial) circuits.set(key, { ...circuit, nextAt: now + trial })
      return { generation: circuit.generation, isTrial }
    },
    succeed: (key, { generation }) => {
      const circuit = of(key)
      if (circuit.generation !== generation) return false
      circuits.delete(key)
      return circuit.nextAt !== undefined
    },
    fail: (key, { generation, isTrial }, now) => {
      const circuit = of(key)
      if (circuit.generation !== generation) return false
      const failures = circuit.failures + 1
      const isOpen = isTrial || failures >= options.failures
      keep(
        key,
        isOpen
          ? { failures, generation: ++generations, nextAt: now + pause }
          : { failures, generation, nextAt: undefined }
      )
      return isOpen && !isTrial
    }
  }
}
