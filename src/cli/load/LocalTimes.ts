/** Times of a wall clock, which a file may have in place of instants. */
import { DateTime } from "effect"

/** The times of a wall clock in a time zone. */
export interface LocalTimes {
  readonly zone: DateTime.TimeZone.Named
  /** The offset from UTC of `2026-01-31T09:30`, as Postgres reads it. Undefined: the clocks skip this time. */
  readonly offsetOf: (minute: string) => string | undefined
  /** The number of times that were asked for and happen twice, as clocks were set back. The first one was taken. */
  readonly repeated: () => number
}

// Offsets change at full or half hours, so ten minutes have one. A year has 52,560 of them.
const most = 200_000

const pad = (value: number) => String(value).padStart(2, "0")

const formatted = (seconds: number) => {
  const [size, sign] = [Math.abs(seconds), seconds < 0 ? "-" : "+"]
  const rest = size % 60 === 0 ? "" : `:${pad(size % 60)}`
  return `${sign}${pad(Math.floor(size / 3600))}:${pad(Math.floor(size / 60) % 60)}${rest}`
}

export const make = (zone: DateTime.TimeZone.Named): LocalTimes => {
  const offsets = new Map<string, { readonly offset: string | undefined; readonly isRepeated: boolean }>()
  let repeated = 0

  const find = (local: number) => {
    const [first, last] = (["earlier", "later"] as const).map((disambiguation) =>
      DateTime.makeZonedUnsafe(local, { timeZone: zone, adjustForTimeZone: true, disambiguation })
    )
    if (first === undefined || last === undefined) return { offset: undefined, isRepeated: false }
    const offset = DateTime.zonedOffset(first)
    // In a gap, both lie beside the time of the clock.
    const isThere = first.epochMilliseconds + offset === local
    const isRepeated = isThere && first.epochMilliseconds !== last.epochMilliseconds
    return { offset: isThere ? formatted(Math.round(offset / 1000)) : undefined, isRepeated }
  }

  return {
    zone,
    offsetOf: (minute) => {
      const key = minute.slice(0, 15)
      let found = offsets.get(key)
      if (found === undefined) {
        if (offsets.size === most) offsets.clear()
        found = find(Date.parse(`${minute}Z`))
        offsets.set(key, found)
      }
      if (found.isRepeated) repeated += 1
      return found.offset
    },
    repeated: () => repeated
  }
}
