/** Stands whose service is in this process: the same routes over the same client, without a socket. */
import { NodeServices } from "@effect/platform-node"
import { Effect, Layer, ScopedRef } from "effect"
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
import type { Session } from "./Session.ts"
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

/** The one session of the embedded database, which is reserved while a transaction is open. */
const onlySession = Effect.fnUntraced(function* (sql: Database) {
  const open = yield* ScopedRef.make<Connection | undefined>(() => undefined)
  const send = (text: string, params: ReadonlyArray<unknown>) =>
    Effect.flatMap(ScopedRef.get(open), (connection): Effect.Effect<ReadonlyArray<object>, SqlError> =>
      connection === undefined
        ? sql.unsafe<object>(text, params).unprepared
        : connection.executeUnprepared(text, params, undefined)
    )
  const session: Session = {
    pid: undefined,
    again: Effect.void,
    run: (text, params = []) => {
      const sent = send(text, params)
      if (text.startsWith("begin")) return Effect.andThen(ScopedRef.set(open, sql.reserve), sent)
      const isEnd = text === "commit" || text === "rollback"
      return isEnd ? Effect.ensuring(sent, ScopedRef.set(open, Effect.undefined)) : sent
    }
  }
  return session
})

/** Begins the order of changes, as a service does when it starts. */
const prepare = Effect.fnUntraced(function* (sql: Database) {
  yield* sql.unsafe(`create sequence if not exists ${sequence}`)
  yield* sql`select change_begin()`
  yield* sql`select change_mark()`
})

/** On an embedded database in memory, which is gone when the scope closes. */
export const embedded = Effect.gen(function* () {
  const sql = yield* Embedded.connect("memory")
  yield* migrate(sql)
  yield* prepare(sql)
  const session = yield* onlySession(sql)
  const stand: Stand = {
    observer: session,
    sessions: [session],
    primary: yield* serviceOver(sql),
    caughtUp: PostgresStand.settled(session),
    isSingle: true
  }
  return stand
}).pipe(Effect.provide([Reactivity.layer, NodeServices.layer]))

/** On a Postgres that has the tables. */
export const over = Effect.fnUntraced(function* (url: string, sql: Database) {
  yield* prepare(sql)
  return yield* PostgresStand.over(() => url, yield* serviceOver(sql))
})
