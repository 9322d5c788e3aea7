/**
 * Loads the demo data into the migrated Postgres of DATABASE_URL, to try the service on it: `npm run demo`.
 *
 * Not for a database that is anybody's: the demo API keys are public. A database that has an organization already is
 * left as it is.
 */
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { config } from "../src/Config.ts"
import { connect } from "../src/database/Database.ts"
import { requireMigrated } from "../src/database/Migrations.ts"
import { loadDemoData } from "../src/demo/Load.ts"
import * as Failure from "../src/process/Failure.ts"

Effect.gen(function* () {
  const { databaseUrl } = yield* config
  const url = yield* Effect.fromOption(databaseUrl)
  const sql = yield* connect({
    url,
    applicationName: "practice-data-demo",
    maxConnections: 1,
    statementTimeout: "1 minute"
  })
  yield* requireMigrated("The database of DATABASE_URL", sql)
  const isLoaded = yield* loadDemoData(sql)
  yield* Console.log(
    isLoaded
      ? "The demo data is loaded, with the API keys pda_demo_oakridge and pda_demo_harbor"
      : "The database has an organization already. Nothing is loaded"
  )
}).pipe(
  Effect.scoped,
  Effect.provide(Reactivity.layer),
  Effect.tapErrorTag(["ConfigError", "NotMigrated", "SqlError"], Failure.report),
  Effect.tapErrorTag("NoSuchElementError", () => Console.error("DATABASE_URL is not set")),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
