/** A stand on real Postgres: a service that is started and asked over HTTP, and a standby where it is our own. */
import { Effect, Schedule } from "effect"
import { Reactivity } from "effect/reactivity"
import { migrate } from "../../../src/database/Migrations.ts"
import type * as Process from "../../../test/support/Process.ts"
import * as Program from "../../../test/support/Program.ts"
import { clientOf } from "../../../test/support/TestDatabase.ts"
import * as Servers from "./Servers.ts"
import { type Ask, Refused } from "./Service.ts"
import type { Stand } from "./Stand.ts"
import * as Session from "./Session.ts"
import { sequence } from "./statements.ts"

const prepare = Effect.fnUntraced(function* (url: string) {
  const sql = yield* clientOf(url)
  yield* migrate(sql)
  yield* sql.unsafe(`create sequence if not exists ${sequence}`)
}, Effect.scoped)

/** The value of an expression, as text. */
const valueOf = (session: Session.Session, expression: string) =>
  Effect.map(
    session.run(`select (${expression})::text as value`),
    ([row]: ReadonlyArray<{ readonly value?: string }>) => row?.value ?? ""
  )

const until = (session: Session.Session, text: string, params: ReadonlyArray<unknown>) =>
  Effect.repeat(
    Effect.map(session.run(text, params), (rows) => rows.length > 0),
    { until: (isSo) => isSo, schedule: Schedule.spaced("1 millis") }
  )

/**
 * Waits until no transaction is open that was open when this was called: then all that was committed lies below the
 * horizon.
 */
export const settled = (observer: Session.Session) =>
  Effect.gen(function* () {
    const now = yield* valueOf(observer, "pg_current_xact_id()")
    yield* until(observer, "select where pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8", [now])
  })

/** A stand on a Postgres that has the tables. */
export const over = Effect.fnUntraced(function* (url: () => string, primary: Ask) {
  const [observer, sessions] = yield* Effect.all([Session.open(url), Effect.replicateEffect(Session.open(url), 5)])
  const version = yield* valueOf(observer, "current_setting('server_version')")
  const stand: Stand = { version, observer, sessions, primary, caughtUp: settled(observer), isSingle: false }
  return stand
})

/** Starts a service, which is gone when the scope closes. */
const service = Effect.fnUntraced(function* (environment: Process.Environment) {
  const { client, output } = yield* Program.start(
    { DATABASE_POOL_SIZE: "8", ROLES: "data-api", ...environment },
    { connections: 16 }
  )
  const ask: Ask = (path, key, body) =>
    Effect.repeat(
      client.call({ path, headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }, body }),
      { while: ({ status }) => status === 503, schedule: Schedule.spaced("100 millis"), times: 600 }
    ).pipe(
      Effect.mapError(({ cause }) => new Refused({ message: `No answer: ${String(cause)} ${output().slice(-4000)}` }))
    )
  return ask
})

/** A stand on a given Postgres. */
const given = Effect.fnUntraced(function* (url: string) {
  yield* prepare(url)
  return yield* over(() => url, yield* service({ DATABASE_URL: url }))
})

/** A stand on servers of our own. */
const own = Effect.gen(function* () {
  const servers = yield* Servers.make
  yield* prepare(servers.url)
  const stand = yield* over(() => servers.primary().url, yield* service({ DATABASE_URL: servers.url }))
  const caughtUp = Effect.all([stand.caughtUp, Effect.orDie(servers.mend)], { discard: true })
  return { ...stand, servers, caughtUp }
})

/** Makes a stand, which is gone when the scope closes. */
export const make = Effect.fnUntraced(function* (databaseUrl: string | undefined) {
  const stand: Stand = yield* databaseUrl === undefined ? own : given(databaseUrl)
  return stand
}, Effect.provide(Reactivity.layer))
