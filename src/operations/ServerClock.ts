/** A measurement of a database server: its distance, its clock, and if it accepts writes. */
import { Duration, Effect, Schema } from "effect"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"
import * as Time from "../process/Time.ts"

const Answer = Schema.Struct({ now: Schema.Finite, isReadOnly: Schema.Boolean })

export interface Measurement {
  /** The milliseconds that a statement takes. */
  readonly took: number
  /** The milliseconds that the clock of the server is ahead of this machine's. */
  readonly ahead: number
  readonly isReadOnly: boolean
}

export const measure = Effect.fnUntraced(function* (sql: Database) {
  const asking = rowsOf(Answer)(sql`
    select (extract(epoch from clock_timestamp()) * 1000)::float8 as now,
      current_setting('transaction_read_only')::boolean as "isReadOnly"`)
  const [duration, [answer]] = yield* Effect.timed(asking)
  const took = Math.round(Duration.toMillis(duration))
  const ahead = (answer?.now ?? NaN) - ((yield* Time.wall) - took / 2)
  return { took, ahead, isReadOnly: answer?.isReadOnly === true } satisfies Measurement
})

/** The difference of the clocks as a sentence, if it is certainly more than some milliseconds. */
export const clockFault = ({ ahead, took }: Measurement, most: number) =>
  Math.abs(ahead) - took / 2 <= most
    ? undefined
    : `Its clock is ${(Math.abs(ahead) / 1000).toFixed(1)} s ${ahead < 0 ? "behind" : "ahead of"} this machine's`
