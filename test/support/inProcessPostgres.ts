/** The services of the data API over a database that holds the demo records and their keys, with statements counted. */
import { Context, Effect, Layer } from "effect"
import * as Database from "../../src/database/Database.ts"
import type * as Store from "../../src/database/Store.ts"
import { accounts } from "../../src/demo/DemoProcessor.ts"
import { PspClient } from "../../src/psp/PspClient.ts"
import * as App from "../../src/app/App.ts"
import { clientOf, TestDatabase } from "./TestDatabase.ts"

/** How many statements each client was asked for. */
export class Statements extends Context.Service<Statements, { records: number; credentials: number; tasks: number }>()(
  "practice-data/test/Http/postgres/Statements"
) {
  static readonly layer = Layer.sync(Statements, () => ({ records: 0, credentials: 0, tasks: 0 }))
}

const counted = (sql: Database.Database, count: () => void): Database.Database => {
  const { run, runShort, short } = sql
  const counting: Pick<Database.Database, "run" | "short" | "runShort"> = {
    short: <A extends object>(query: Store.Query) => Effect.andThen(Effect.sync(count), short<A>(query)),
    run: (request, statements) => Effect.andThen(Effect.sync(count), run(request, statements)),
    runShort: (request, statement, alone) => Effect.andThen(Effect.sync(count), runShort(request, statement, alone))
  }
  return Object.assign(sql, counting)
}

const options = {
  maxConnections: 5,
  sharedConnections: 1,
  statementTimeout: "3 seconds",
  settings: Database.lockTimeout
} as const

const client = Effect.fnUntraced(function* (name: keyof Statements["Service"]) {
  const statements = yield* Statements
  const connected = yield* clientOf((yield* TestDatabase).url, options)
  return counted(connected, () => void statements[name]++)
})

const databases = Layer.mergeAll(
  Layer.effect(Database.RecordDatabase, client("records")),
  Layer.effect(Database.CredentialDatabase, client("credentials")),
  Layer.effect(Database.TaskDatabase, client("tasks"))
)

const primary = Layer.effect(Database.ChangeDatabase, Database.RecordDatabase)

/** A database of the test's own, and the counts. */
export const store = Layer.merge(TestDatabase.layerDemo, Statements.layer)

/** The services over it. */
export const services = App.services.pipe(
  Layer.provide([Layer.provideMerge(primary, databases), PspClient.layerMemory(accounts)])
)
