/** What the benches share: a Postgres, interleaved rounds, and tables of their medians. */
import { Effect, Record } from "effect"
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

/** What each contender took in each round, by its name. */
export type Measured<A> = ReadonlyMap<string, Array<A>>

/** Measures all contenders in each of some rounds, after one that warms up. */
export const interleaved = async <A>(rounds: number, contenders: Readonly<Record<string, () => Promise<A>>>) => {
  const measured: Measured<A> = new Map(Object.keys(contenders).map((name) => [name, []]))
  for (let round = 0; round <= rounds; round++) {
    for (const [name, measure] of Object.entries(contenders)) {
      const took = await measure()
      if (round > 0) measured.get(name)?.push(took)
    }
  }
  return measured
}

/** Prints medians. Ratios to the first contender are those within a round: all had the same machine in it. */
export const table = <A>(
  title: string,
  what: string,
  measured: Measured<A>,
  columns: Readonly<Record<string, (its: A, first: A) => number>>
) => {
  const [firsts = []] = measured.values()
  console.log(`\n${title}`)
  console.table(
    [...measured].map(([name, all]) => ({
      [what]: name,
      ...Record.map(columns, (value) => figure(median(all.map((its, round) => value(its, firsts[round] ?? its)))))
    }))
  )
}
