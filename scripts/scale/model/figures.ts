/** What the model reckons with: what was measured, with the command that measured it, and what is assumed. */
import { measured } from "./measured.ts"

/** A figure and where it is from. */
export interface Figure {
  readonly value: number
  readonly unit: string
  readonly what: string
  /** The command that printed it, or why it is assumed. */
  readonly source: string
}

const here = `npm run bench:scale, ${measured.date}, commit ${measured.commit}`
const reads = "npm run bench -- 5 1, 2026-11-21, commit 4186368"
const changes = "npm run bench:changes -- 5 2, 2026-11-22"
const deletions = "npm run bench:deletions -- 3000 2000 5, 2026-11-22"

const { figures } = measured

/** Figures that a command has printed. */
export const known = {
  recordBytes: {
    value: figures.recordTableBytes + figures.recordIndexBytes,
    unit: "bytes",
    what: "a record of the mix with its indexes",
    source: here
  },
  logBytes: {
    value: figures.logTableBytes + figures.logIndexBytes,
    unit: "bytes",
    what: "a consumption log with its indexes",
    source: here
  },
  copyIn: {
    value: figures.copyInPerCpuSecond,
    unit: "records for each second of one core",
    what: "consumption logs, the widest records, into their table with its indexes, by COPY; pg_restore, which builds indexes last, needs less",
    source: here
  },
  copyOut: {
    value: figures.copyOutPerCpuSecond,
    unit: "records for each second of one core",
    what: "consumption logs out of the database, by COPY",
    source: here
  },
  indexBuild: {
    value: figures.indexBuildPerCpuSecond,
    unit: "records for each second of one core",
    what: "an index of four columns, built while the table is in use",
    source: here
  },
  vacuum: {
    value: figures.vacuumPerCpuSecond,
    unit: "records for each second of one core",
    what: "a vacuum of consumption logs of which a tenth has changed",
    source: here
  },
  taskBytes: { value: figures.taskBytes, unit: "bytes", what: "a deletion task that is done", source: here },
  keyBytes: { value: figures.keyBytes, unit: "bytes", what: "an API key with its indexes", source: here },
  mapKilobytes: {
    value: ((figures.haproxyMegabytes - figures.haproxyMegabytesEmpty) * 1024) / 1.1e6,
    unit: "KiB",
    what: "a line of a map in the memory of haproxy",
    source: here
  },
  pollDatabase: {
    value: 0.0435,
    unit: "ms of CPU",
    what: "a poll of changes without news, in the database",
    source: changes
  },
  pollServer: {
    value: 0.0713,
    unit: "ms of CPU",
    what: "a poll of changes without news, in the service",
    source: changes
  },
  pageDatabase: { value: 0.081, unit: "ms of CPU", what: "a page of 100, in the database", source: reads },
  pageServer: { value: 0.175, unit: "ms of CPU", what: "a page of 100, in the service", source: reads },
  tasks: { value: 3608, unit: "tasks a second", what: "deletions of one worker", source: deletions }
} as const satisfies Readonly<Record<string, Figure>>

/** What organizations do: put your own here. */
export const assumed = {
  records: { value: 100_000, unit: "records", what: "of an organization, in the mean", source: "10^10 of 100,000" },
  skew: {
    value: 0.8,
    unit: "exponent of Zipf's law",
    what: "the n-th largest organization has 1/n^0.8 of the records of the largest",
    source: "assumed"
  },
  keys: { value: 10, unit: "API keys", what: "of an organization", source: "1,000,000 of 100,000" },
  changed: { value: 0.01, unit: "of the records", what: "written each day", source: "assumed" },
  polls: {
    value: 15 / 60,
    unit: "a second",
    what: "of an organization: 15 resources, each once a minute",
    source: "assumed"
  },
  copies: { value: 1 / 30, unit: "a day", what: "a new copy of all records of an organization", source: "assumed" },
  deliveries: { value: 20, unit: "a day", what: "of an organization", source: "assumed" },
  peak: { value: 4, unit: "times the mean", what: "the busiest hour", source: "assumed" }
} as const satisfies Readonly<Record<string, Figure>>

/** What one Postgres may need before it is divided: put your own here. */
export const limits = {
  disk: { value: 4, unit: "TB", what: "on the disk, with a third of it free for bloat and builds", source: "chosen" },
  restore: {
    value: 8,
    unit: "hours",
    what: "to restore a dump with 8 jobs, of which one has the largest table",
    source: "chosen"
  },
  index: { value: 4, unit: "hours", what: "to add an index to the largest table", source: "chosen" },
  cores: { value: 16, unit: "cores", what: "busy in the busiest hour", source: "chosen" },
  connections: { value: 500, unit: "connections", what: "of all processes", source: "chosen" }
} as const satisfies Readonly<Record<string, Figure>>
