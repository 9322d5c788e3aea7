/** A Postgres of the test's own, which it may stop as a power cut would. */
import { Effect, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect } from "../../src/database/Database.ts"
import { migrate } from "../../src/database/Migrations.ts"
import * as LocalPostgres from "./LocalPostgres.ts"

export { freePort } from "./LocalPostgres.ts"

/** Starts a Postgres with the tables, which is gone when the scope closes. */
export const make = Effect.gen(function* () {
  // A process that is killed loses nothing that the system was given to write.
  const postgres = yield* LocalPostgres.make({ settings: { fsync: "off", max_connections: 200 } })
  const sql = yield* connect({
    url: Redacted.make(postgres.url),
    applicationName: "practice-data-faults",
    maxConnections: 4,
    statementTimeout: "1 minute"
  })
  yield* migrate(sql)
  return { ...postgres, sql }
}).pipe(Effect.provide(Reactivity.layer))

export type OwnPostgres = Effect.Success<typeof make>
