/** Runs a text of SQL statements on a connection of its own, as psql does. */
import { Effect } from "effect"
import { Client } from "pg"

export const asPsql = Effect.fnUntraced(function* (url: string, text: string) {
  const client = yield* Effect.acquireRelease(
    Effect.sync(() => new Client(url)),
    (made) => Effect.promise(() => made.end())
  )
  yield* Effect.promise(() => client.connect())
  yield* Effect.promise(() => client.query(text))
}, Effect.scoped)
