/** Times of a wall clock, which a file may have in place of instants. */
import { DateTime } from "effect"

// Offsets change at full or half hours, so ten minutes have one. A year has 52,560 of them.
const most = 200_000

const pad = (value: number) => String(value).padStart(2, "0")

const formatted = (seconds: number) => {
  const [size, sign] = [Math.abs(seconds), seconds < 0 ? "-" : "+"]
  const rest = size % 60 === 0 ? "" : `:${pad(size % 60)}`
  return `${sign}${pad(Math.floor(size / 3600))}:${pad(Math.floor(size / 60) % 60)}${rest}`
}

export const make = (zone: DateTime.TimeZone.Named) => {
  const offsets = new Map<string, { readonly offset: string | undefined; readonly isRepeated: boolean }>()
  let repeated = 0

  const find = (local: number) => {
    const zoned = (disambiguation: DateTime.Disambiguation) =>
      DateTime.makeZonedUnsafe(local, { timeZone: zone, adjustForTimeZone: true, disambiguation })
    const [first, last] = [zoned("earlier"), zoned("later")]
    const offset = DateTime.zonedOffset(first)
    // In a gap, both lie beside the time of the clock.
    const isThere = first.epochMilliseconds + offset === local
    const isRepeated = isThere && first.epochMilliseconds !== last.epochMilliseconds
    return { offset: isThere ? formatted(Math.round(offset / 1000)) : undefined, isRepeated }
  }

  return {
    zone,
    /** The offset from UTC of `2026-01-31T09:30`, as Postgres reads it. Undefined: the clocks skip this time. */
    offsetOf: (minute: string) => {
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
    /** The number of requested times that happened twice, as clocks were set back. The first one was taken. */
    repeated: () => repeated
  }
}

export type LocalTimes = ReturnType<typeof make>
