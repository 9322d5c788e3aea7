/** Which traces are made: the samplers of OpenTelemetry, by the values of `OTEL_TRACES_SAMPLER`. */
import type { Tracer } from "effect"

export const names = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio"
] as const
export type Name = (typeof names)[number]

/** Decides when the first span of this process is made; all others of the trace follow it. */
export interface Sampler {
  /** Whether what the caller decided is enough. */
  readonly isParentBased: boolean
  /** Whether a trace is made that nobody has decided on. The same for the same id everywhere. */
  readonly takes: (traceId: string) => boolean
}

const bits = 52

/**
 * Whether an id is among a ratio of all: by its last 56 bits, which are random, and of these the higher ones, as many as a
 * number holds. An id that a ratio takes is taken by every higher one, here and in services that follow the same rule.
 */
const isAmong = (ratio: number) => {
  const threshold = Math.round((1 - ratio) * 2 ** bits)
  return (traceId: string) => Number.parseInt(traceId.slice(18, 18 + bits / 4), 16) >= threshold
}

const takesOf = (name: Name, ratio: number) => {
  if (name.endsWith("always_on")) return () => true
  return name.endsWith("always_off") ? () => false : isAmong(ratio)
}

/** @param ratio of the samplers by ratio: from 0 for none to 1 for all */
export const make = (name: Name, ratio: number): Sampler => ({
  isParentBased: name.startsWith("parentbased_"),
  takes: takesOf(name, ratio)
})

/** Whether a trace is made that goes on from a caller's span, where there is one. */
export const isSampled = (sampler: Sampler, traceId: string, parent: Tracer.AnySpan | undefined): boolean =>
  parent !== undefined && sampler.isParentBased ? parent.sampled : sampler.takes(traceId)
