/** Counts what happened since the last time that all resources were in step. */
import type { Event } from "./Progress.ts"

/** What was applied of a resource. */
export interface Count {
  readonly resource: string
  readonly records: number
  readonly removed: number
  /** When it was begun, and when it was in step, in milliseconds. */
  readonly since: number
  readonly until: number | undefined
}

export const secondsOf = ({ since, until }: Count, now: number) => ((until ?? now) - since) / 1000

/** Counts events, each with its time in milliseconds. */
export const make = () => {
  let counts = new Map<string, Count>()
  const change = (resource: string, now: number, f: (count: Count) => Count) => {
    const count = counts.get(resource) ?? { resource, records: 0, removed: 0, since: now, until: undefined }
    counts.set(resource, f(count))
  }
  return {
    add: (event: Event, now: number): void => {
      switch (event._tag) {
        case "Started":
          return change(event.resource, now, (count) => ({ ...count, until: undefined }))
        case "Applied":
          return change(event.resource, now, (count) => ({
            ...count,
            records: count.records + event.records,
            removed: count.removed + event.removed
          }))
        case "InStep":
          return change(event.resource, now, (count) => ({ ...count, until: now }))
        case "RoundEnded":
          counts = new Map()
          return
        case "Opened":
        case "Note":
          return
      }
    },
    counts: (): ReadonlyArray<Count> => [...counts.values()],
    count: (resource: string): Count | undefined => counts.get(resource)
  }
}

export type Tally = ReturnType<typeof make>

/** The sum of counts. */
export const totalOf = (counts: ReadonlyArray<Count>) => ({
  records: counts.reduce((sum, { records }) => sum + records, 0),
  removed: counts.reduce((sum, { removed }) => sum + removed, 0),
  since: counts.reduce((first, { since }) => Math.min(first, since), Number.POSITIVE_INFINITY)
})
