/**
 * A connection that statements of several callers share: each is sent without waiting for the answers to those before it.
 *
 * A multiplexed client would do the same. But it makes a span for each statement, also where nothing is traced, and
 * remembers the text of each: measured, that is about 5 % of the CPU time of a single record.
 */
import { PgPool, type PgConnection } from "@effect/sql-pg"
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { spanName } from "effect/sql/Statement"
import * as Tracing from "../observability/Tracing.ts"

export interface SharedConnection {
  /** Runs a statement. What its rows are is the caller's word, as for `unsafe` of a client. */
  readonly run: <A extends object>(
    text: string,
    values: ReadonlyArray<unknown>
  ) => Effect.Effect<ReadonlyArray<A>, SqlError>
}

// As unchecked as `unsafe` of the client, which the same rows went through before: a text of SQL tells no types.
function rowsOf<A extends object>(result: PgConnection.Result): ReadonlyArray<A>
function rowsOf({ rows }: PgConnection.Result): ReadonlyArray<object> {
  return rows
}

/**
 * A connection that opens when it is needed, and anew after it was lost, until the scope closes.
 *
 * @param config of one connection, multiplexed
 * @param attributes what the span of each statement says of the server
 */
export const make = (config: PgPool.Config, attributes: () => Readonly<Record<string, unknown>>) =>
  Effect.map(PgPool.make(config), (pool): SharedConnection => ({
    run: <A extends object>(text: string, values: ReadonlyArray<unknown>) =>
      Effect.contextWith((context) => {
        const rows = Effect.map(
          pool.use((connection) => connection.query(text, values)),
          rowsOf<A>
        )
        if (!Tracing.isTraced(context)) return rows
        const said = Object.entries({ ...attributes(), "effect.sql.method": "execute", "db.query.text": text })
        const span = Tracing.child(context, spanName(said), { kind: "client" })
        for (const [name, value] of said) span?.attribute(name, value)
        return Effect.onExit(rows, (exit) => Effect.sync(() => span?.end(Tracing.now(context), exit)))
      })
  }))
