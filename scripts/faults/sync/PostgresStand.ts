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

/**
 * Waits until no transaction is open that was open when this was called: then all that was committed lies below the
 * horizon.
 */
export const settled = (observer: Session.Session) =>
  Effect.gen(function* () {
    const [row]: ReadonlyArray<{ readonly now?: string }> = yield* observer.run(
      "select pg_current_xact_id()::text as now"
    )
    const ended = observer.run("select where pg_snapshot_xmin(pg_current_snapshot()) > $1::xid8", [row?.now])
    yield* Effect.repeat(ended, { until: ({ length }) => length > 0, schedule: Schedule.spaced("1 millis") })
  })

/** A stand on a Postgres that has the tables. */
export const over = Effect.fnUntraced(function* (url: () => string, primary: Ask) {
  const [observer, sessions] = yield* Effect.all([Session.open(url), Effect.replicateEffect(Session.open(url), 5)])
  const stand: Stand = { observer, sessions, primary, caughtUp: settled(observer), isSingle: false }
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

/** Starts servers of its own, and a service over them, which are gone when the scope closes. */
export const make = Effect.gen(function* () {
  const servers = yield* Servers.make
  const sql = yield* clientOf(servers.url)
  yield* migrate(sql)
  yield* sql.unsafe(`create sequence if not exists ${sequence}`)
  const stand = yield* over(() => servers.primary().url, yield* service({ DATABASE_URL: servers.url }))
  const caughtUp = Effect.all([stand.caughtUp, Effect.orDie(servers.mend)], { discard: true })
  const own: Stand = { ...stand, servers, caughtUp }
  return own
}).pipe(Effect.provide(Reactivity.layer))
