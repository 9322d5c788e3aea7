/** What the benches share: a Postgres, medians, and a table to print. */
import * as Os from "node:os"
import { Effect } from "effect"
import * as LocalPostgres from "../../test/support/LocalPostgres.ts"

/**
 * A Postgres of the bench's own, with its default durability.
 *
 * @param folder where to keep its data for another time; without it, the data goes away with the server
 */
export const startPostgres = async (folder?: string, settings: LocalPostgres.Options["settings"] = {}) => {
  const postgres = await Effect.runPromise(
    LocalPostgres.open({ folder, settings: { shared_buffers: "512MB", max_connections: 200, ...settings } })
  )
  const pid = postgres.pid()
  if (pid === undefined) throw new Error("Postgres ended at once")
  return { url: postgres.url, pid, stop: () => Effect.runPromise(postgres.stop) }
}

/** The middle of the values. */
export const median = (values: ReadonlyArray<number>): number => {
  const sorted = values.toSorted((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)] ?? Number.NaN
}

/** A figure with three digits. */
export const figure = (value: number) => (value >= 100 ? Math.round(value) : Number(value.toPrecision(3)))

/** What one round of a contender took. */
export interface Measure {
  readonly perSecond: number
  /** CPU time of this process for each operation, in milliseconds; the database's is not in it. */
  readonly cpuMillis: number
}

/** Runs something that does `count` operations. */
export const measure = async (count: number, work: () => Promise<void>): Promise<Measure> => {
  const cpu = process.cpuUsage()
  const start = process.hrtime.bigint()
  await work()
  const seconds = Number(process.hrtime.bigint() - start) / 1e9
  const { user, system } = process.cpuUsage(cpu)
  return { perSecond: count / seconds, cpuMillis: (user + system) / 1000 / count }
}

/** Medians over rounds of each contender, beside the first. */
export const report = (title: string, measures: Readonly<Record<string, ReadonlyArray<Measure>>>) => {
  const [first] = Object.values(measures)
  const base = median(first?.map(({ perSecond }) => perSecond) ?? [])
  console.log(`\n${title}`)
  console.table(
    Object.entries(measures).map(([contender, rounds]) => {
      const perSecond = median(rounds.map((round) => round.perSecond))
      return {
        contender,
        "per second": Math.round(perSecond),
        "ours / its": Number((base / perSecond).toFixed(2)),
        "CPU ms each": Number(median(rounds.map((round) => round.cpuMillis)).toFixed(3))
      }
    })
  )
}

/** The day and the machine, for readers of the figures, which are medians of these rounds. */
export const caption = (rounds: string) =>
  `${new Date().toISOString().slice(0, 10)}, ${Os.cpus().length} x ${Os.cpus()[0]?.model.trim() ?? "CPU"}, ${Math.round(Os.totalmem() / 2 ** 30)} GiB, Node ${process.version}; medians of ${rounds}`
