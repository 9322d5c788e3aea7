/**
 * Circuit breakers by key: after several failures in a row the circuit of a key opens and its calls are refused for a
 * while. Then calls are let through as probes, and the first that succeeds closes the circuit.
 *
 * Probes are paced, not exclusive: when one has no outcome after a moment, the next caller makes another. The breaker of
 * `effect/persistence` refuses everyone until its one probe ends, so that a probe that hangs keeps the circuit open. It
 * also ignores interrupted calls, and does not say when it lets a call through while a probe runs.
 */
import { Duration, Iterable, Predicate } from "effect"

export interface Options {
  /** How many failures in a row open a circuit. */
  readonly failures: number
  /** How long an open circuit refuses every call. */
  readonly openDuration: Duration.Duration
  /** How long a probe may take before there is another one. */
  readonly probeInterval: Duration.Duration
  /** How many circuits with failures are kept; past it, the one that failed longest ago is forgotten. */
  readonly maximumCircuits: number
}

/** A time of being open, and when it lets the next call through. */
interface Opening {
  nextAt: number
}

/** A call that was let through, to be handed back with its outcome. */
export interface Permit {
  /** Set for a probe. The outcome of a call counts only while this is still the state of the circuit. */
  readonly opening: Opening | undefined
}

export interface CircuitBreaker {
  readonly isOpen: (key: string) => boolean
  /** How many circuits are open. */
  readonly open: () => number
  /** Milliseconds until a call of a key may be made; 0 when it may be made now. */
  readonly untilNext: (key: string, now: number) => number
  /** Records that a call is being made, which `untilNext` has to allow. */
  readonly admit: (key: string, now: number) => Permit
  /** Records that a call succeeded. Whether that closes the circuit. */
  readonly succeed: (key: string, permit: Permit) => boolean
  /** Records that a call failed. Whether that opens the circuit, which was closed. */
  readonly fail: (key: string, permit: Permit, now: number) => boolean
}

/** Closed circuits. Times are milliseconds of any one clock. */
export const make = (options: Options): CircuitBreaker => {
  const openDuration = Duration.toMillis(options.openDuration)
  const probeInterval = Duration.toMillis(options.probeInterval)
  // The failures in a row of a closed circuit, or the opening of an open one. A circuit without failures is not kept.
  const circuits = new Map<string, number | Opening>()

  const openingOf = (key: string) => {
    const circuit = circuits.get(key)
    return typeof circuit === "object" ? circuit : undefined
  }

  const keep = (key: string, circuit: number | Opening) => {
    circuits.delete(key)
    circuits.set(key, circuit)
    const [oldest] = circuits.keys()
    if (circuits.size > options.maximumCircuits && oldest !== undefined) circuits.delete(oldest)
  }

  return {
    isOpen: (key) => openingOf(key) !== undefined,
    open: () => Iterable.size(Iterable.filter(circuits.values(), Predicate.isObject)),
    untilNext: (key, now) => Math.max(0, (openingOf(key)?.nextAt ?? now) - now),
    admit: (key, now) => {
      const opening = openingOf(key)
      if (opening !== undefined) opening.nextAt = now + probeInterval
      return { opening }
    },
    succeed: (key, { opening }) => {
      if (openingOf(key) !== opening) return false
      circuits.delete(key)
      return opening !== undefined
    },
    fail: (key, { opening }, now) => {
      const circuit = circuits.get(key)
      if (openingOf(key) !== opening) return false
      const failures = typeof circuit === "number" ? circuit + 1 : 1
      const isOpen = opening !== undefined || failures >= options.failures
      keep(key, isOpen ? { nextAt: now + openDuration } : failures)
      return isOpen && opening === undefined
    }
  }
}
