/** Times of a wall clock, which a file may have in place of instants. */
import { DateTime } from "effect"

// Offsets change at full or half hours, so ten minutes have one. A year has 52,560 of them.
const most = 200_000

export const make = (zone: DateTime.TimeZone.Named) => {
  const offsets = new Map<string, { readonly offset: number | undefined; readonly isRepeated: boolean }>()
  let repeated = 0

  const find = (local: number) => {
    const zoned = (disambiguation: DateTime.Disambiguation) =>
      DateTime.makeZonedUnsafe(local, { timeZone: zone, adjustForTimeZone: true, disambiguation })
    const [first, last] = [zoned("earlier"), zoned("later")]
    const offset = DateTime.zonedOffset(first)
    // In a gap, both lie beside the time of the clock.
    const isThere = first.epochMilliseconds + offset === local
    const isRepeated = isThere && first.epochMilliseconds !== last.epochMilliseconds
    return { offset: isThere ? offset : undefined, isRepeated }
  }

  return {
    zone,
    /** The offset from UTC of `2026-01-31T09:30`, in milliseconds. Undefined: the clocks skip this time. */
    offsetOf: (minute: string) => {
      const key = minute.slice(0, 15)
      let local = offsets.get(key)
      if (local === undefined) {
        if (offsets.size === most) offsets.clear()
        local = find(Date.parse(`${minute}Z`))
        offsets.set(key, local)
      }
      if (local.isRepeated) repeated += 1
      return local.offset
    },
    /** The number of requested times that happened twice, as clocks were set back. The first one was taken. */
    repeated: () => repeated
  }
}

export type LocalTimes = ReturnType<typeof make>
