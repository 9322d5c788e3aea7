/** Stands whose service is in this process: the same routes over the same client, without a socket. */
import { NodeServices } from "@effect/platform-node"
import { Effect, Exit, Layer, Scope } from "effect"
import { Reactivity } from "effect/reactivity"
import type { SqlError } from "effect/sql/SqlError"
import type { Connection } from "effect/sql/SqlConnection"
import * as App from "../../../src/app/App.ts"
import { type Database, layerShared } from "../../../src/database/Database.ts"
import * as Embedded from "../../../src/database/Embedded.ts"
import { migrate } from "../../../src/database/Migrations.ts"
import { PspClient } from "../../../src/psp/PspClient.ts"
import { InProcess } from "../../../test/support/inProcess.ts"
import * as PostgresStand from "./PostgresStand.ts"
import type { Stand } from "./Stand.ts"
import type { Ask } from "./Service.ts"
import type * as Session from "./Session.ts"
import { sequence } from "./statements.ts"

/** The data API over a database. */
const serviceOver = Effect.fnUntraced(function* (sql: Database) {
  const services = App.services.pipe(Layer.provide([layerShared(sql), PspClient.layerNotConfigured]))
  const handle = yield* Effect.provide(InProcess, yield* Layer.build(InProcess.layer(services)))
  const ask: Ask = (path, key, body) =>
    Effect.promise((signal) =>
      handle(
        new Request(`http://localhost${path}`, {
          method: "POST",
          headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
          body: new TextEncoder().encode(body),
          signal
        })
      ).then((response) =>
        response
          .text()
          .then((text) => ({ status: response.status, headers: Object.fromEntries(response.headers), text }))
      )
    )
  return ask
})

const run = (connection: Connection, text: string, params: ReadonlyArray<unknown>) =>
  Effect.map(connection.executeUnprepared(text, params, undefined), (rows): ReadonlyArray<object> => rows)

/** The one session of the embedded database, which is reserved while a transaction is open. */
const onlySession = (sql: Database): Session.Session => {
  let open: { readonly connection: Connection; readonly scope: Scope.Closeable } | undefined
  const begin = Effect.gen(function* () {
    const scope = yield* Scope.make()
    const connection = yield* Scope.provide(sql.reserve, scope)
    open = { connection, scope }
  })
  const end = Effect.suspend(() => {
    const ended = open
    open = undefined
    return ended === undefined ? Effect.void : Scope.close(ended.scope, Exit.void)
  })
  const send = (text: string, params: ReadonlyArray<unknown>): Effect.Effect<ReadonlyArray<object>, SqlError> =>
    Effect.suspend(() =>
      open === undefined
        ? Effect.scoped(Effect.flatMap(sql.reserve, (connection) => run(connection, text, params)))
        : run(open.connection, text, params)
    )
  return {
    pid: undefined,
    run: (text, params = []) => {
      if (text.startsWith("begin")) return Effect.andThen(begin, send(text, params))
      const sent = send(text, params)
      return text === "commit" || text === "rollback" ? Effect.ensuring(sent, end) : sent
    }
  }
}

/** On an embedded database in memory, which is gone when the scope closes. */
export const embedded = Effect.gen(function* () {
  const { sql } = yield* Embedded.connect("memory")
  yield* migrate(sql)
  yield* sql.unsafe(`create sequence if not exists ${sequence}`)
  const session = onlySession(sql)
  const stand: Stand = {
    observer: session,
    sessions: [session],
    primary: yield* serviceOver(sql),
    reopen: Effect.void,
    caughtUp: PostgresStand.settled(session),
    isSingle: true
  }
  return stand
}).pipe(Effect.provide([Reactivity.layer, NodeServices.layer]))

/** On a Postgres that has the tables. */
export const over = Effect.fnUntraced(function* (url: string, sql: Database) {
  yield* sql.unsafe(`create sequence if not exists ${sequence}`)
  // As a service does when it starts: in a copied database the order of changes begins anew.
  yield* sql`select change_begin()`
  yield* sql`select change_mark()`
  return yield* PostgresStand.over(url, yield* serviceOver(sql))
})
