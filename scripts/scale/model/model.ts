/** What organizations and records need of a Postgres and of the service, and how they are divided into groups. */
import { assumed, known, limits } from "./figures.ts"

/** What is on one Postgres. */
export interface Load {
  readonly organizations: number
  readonly records: number
}

const day = 86_400
const hour = 3600
const jobs = 8
const freeShare = 1 / 3
/** Of 187 records of the mix, 100 are consumption logs. */
const largestTable = 100 / 187
/** A process of the service is one core, which is full at this. */
const fullCore = 0.7
const connectionsOfProcess = 3 * 10

/** How long something takes that goes table by table, several at a time: never shorter than the largest table alone. */
const tableByTable = (records: number, perSecond: number) =>
  Math.max(records / jobs, records * largestTable) / perSecond / hour

/** How many cores something takes: so many a second, each of so many milliseconds. */
const cores = (perSecond: number, millis: number) => (perSecond * millis) / 1000

/** What a load needs, in the units of the limits; the cores in the busiest hour. */
export const needs = ({ organizations, records }: Load) => {
  const written = (records * assumed.changed.value) / day
  const pages = written / 100 + (records * assumed.copies.value) / day / 100
  const polls = organizations * assumed.polls.value
  const database =
    cores(polls, known.pollDatabase.value) + cores(pages, known.pageDatabase.value) + written / known.copyIn.value
  const service = cores(polls, known.pollServer.value) + cores(pages, known.pageServer.value)
  const processes = Math.ceil((service * assumed.peak.value) / fullCore)
  return {
    disk: (records * known.recordBytes.value) / (1 - freeShare) / 1e12,
    restore: tableByTable(records, known.copyIn.value),
    index: (records * largestTable) / known.indexBuild.value / hour,
    cores: database * assumed.peak.value,
    connections: processes * connectionsOfProcess
  } satisfies Readonly<Record<keyof typeof limits, number>>
}

/** What a load needs beside that, and no limit is set for. */
export const others = ({ organizations, records }: Load) => ({
  dumpHours: tableByTable(records, known.copyOut.value),
  vacuumHours: (records * largestTable) / known.vacuum.value / hour,
  pollsPerSecond: organizations * assumed.polls.value * assumed.peak.value,
  workers: (organizations * assumed.deliveries.value * assumed.peak.value) / day / known.tasks.value,
  processes: needs({ organizations, records }).connections / connectionsOfProcess,
  keysMegabytes: (organizations * assumed.keys.value * known.keyBytes.value) / 1e6,
  mapsMegabytes: (organizations * (assumed.keys.value + 1) * known.mapKilobytes.value) / 1024,
  taskGigabytesOfYear: (organizations * assumed.deliveries.value * 365 * known.taskBytes.value) / 1e9
})

/** How often each limit goes into what a load needs, the tightest first. */
export const pressure = (load: Load) =>
  Object.entries(needs(load))
    .flatMap(([name, need]) =>
      Object.entries(limits).flatMap(([limit, { value }]) =>
        limit === name ? [{ name: limit, share: need / value }] : []
      )
    )
    .toSorted((one, other) => other.share - one.share)

const fits = (load: Load) => pressure(load).every(({ share }) => share <= 1)

/** The records of each organization, the largest first. */
export const sizes = (organizations: number, skew: number = assumed.skew.value): ReadonlyArray<number> => {
  const weights = Array.from({ length: organizations }, (_, index) => (index + 1) ** -skew)
  const sum = weights.reduce((total, weight) => total + weight, 0)
  return weights.map((weight) => (weight / sum) * organizations * assumed.records.value)
}

/** Puts each organization into the group that has the fewest records, the largest organization first. */
export const divide = (all: ReadonlyArray<number>, groups: number): ReadonlyArray<Load> => {
  const found = Array.from({ length: groups }, () => ({ organizations: 0, records: 0 }))
  for (const records of all) {
    const emptiest = found.reduce((least, group) => (group.records < least.records ? group : least))
    emptiest.organizations += 1
    emptiest.records += records
  }
  return found
}

/** The fewest groups that keep the limits; none when the largest organization alone breaks one. */
export const fewestGroups = (all: ReadonlyArray<number>): ReadonlyArray<Load> | undefined => {
  const [largest = 0] = all
  if (!fits({ organizations: 1, records: largest })) return undefined
  const together = { organizations: all.length, records: all.reduce((sum, records) => sum + records, 0) }
  for (let groups = Math.max(1, Math.floor(pressure(together)[0]?.share ?? 1)); groups <= all.length; groups++) {
    const found = divide(all, groups)
    if (found.every(fits)) return found
  }
  return undefined
}
