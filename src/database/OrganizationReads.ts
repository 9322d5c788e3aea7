/** Reads for the organization of a request, whose id is `$1` of each statement. */
import { Duration, Effect } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import { RecordStoreDown } from "../api/Errors.ts"
import type { Database } from "./Database.ts"
import { inTransaction, retryOvertaken } from "./SqlFailure.ts"

/** A statement that reads up to `limit` rows of an organization. */
export interface Query<Row> {
  /** The SQL. The id of the organization is `$1`, as often as it stands there; `values` follow from `$2` on. */
  readonly text: string
  readonly values: ReadonlyArray<unknown>
  readonly columns: ReadonlyArray<string & keyof Row>
  readonly limit: number
  /** True if the plan does not depend on the values, so that it is made once. */
  readonly isPlannedOnce: boolean
  /** True if Postgres estimates it as so costly that it compiles the plan unless `jit` is off, which takes seconds. */
  readonly isCostly?: boolean
}

/** Reads the rows of a query for the organization of the context. */
export type Reader<E, R> = <Row extends object>(query: Query<Row>) => Effect.Effect<ReadonlyArray<Row>, E, R>

const within = Duration.seconds(8)

/** Runs the statement of a query, or another text for it, with the value of `$1`, in the turn of a fairness key. */
export const run = <Row extends object>(
  sql: Database,
  { isCostly = false, isPlannedOnce, text, values }: Pick<Query<Row>, "isCostly" | "isPlannedOnce" | "text" | "values">,
  owner: unknown,
  key: string
) => {
  const statement = sql.unsafe<Row>(text, [owner, ...values])
  const planned = isPlannedOnce ? statement : statement.unprepared
  const isBare = isCostly && sql.isPooled === true
  const read = retryOvertaken(isBare ? inTransaction(sql, Effect.andThen(sql`set local jit = off`, planned)) : planned)
  return sql.run({ key, within, unavailable: RecordStoreDown.from }, read)
}

/** Reads for the current organization. */
export const make = (sql: Database): Reader<RecordStoreDown, CurrentOrganization> =>
  Effect.fnUntraced(function* <Row extends object>(query: Query<Row>) {
    const id = yield* CurrentOrganization.id
    return yield* run<Row>(sql, query, id, `organization ${id}`)
  })
