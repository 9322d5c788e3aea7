/** Faults of the databases. */
import { Effect, Scope } from "effect"
import * as TcpProxy from "../../../../test/blackbox/support/TcpProxy.ts"
import * as OwnPostgres from "../../../../test/faults/support/OwnPostgres.ts"
import type * as LocalPostgres from "../../../../test/support/LocalPostgres.ts"
import { Reactivity } from "effect/reactivity"
import { loadDemoData } from "../../../../src/demo/Load.ts"
import * as Proc from "../../support/Proc.ts"
import * as Service from "../../support/Service.ts"
import { everyday, type Fault, make, problemOf, start, startAgain, traffic, type Watched } from "../Fault.ts"

const reads = [...everyday, Service.delivery("watched")] as const

/** Signals a Postgres with all of its processes. */
const signalAll = ({ pid }: OwnPostgres.OwnPostgres, name: NodeJS.Signals) =>
  Effect.gen(function* () {
    const postmaster = pid() ?? 0
    const others = yield* Proc.children(postmaster)
    yield* Effect.forEach([postmaster, ...others], (one) => Proc.signal(one, name))
  })

/** A Postgres of the fault's own, which is taken away from all that use it. */
const ofItsOwn = (
  about: Pick<Fault, "done" | "name">,
  ways: (postgres: OwnPostgres.OwnPostgres) => {
    readonly begin: Effect.Effect<void>
    readonly heal: Effect.Effect<void, LocalPostgres.PostgresError>
  }
) =>
  make({
    ...about,
    seen: {
      alert: "PracticeDataDatabaseDown",
      says: "The records database does not answer",
      log: /The record store cannot be reached/,
      health: problemOf("records")
    },
    stand: Effect.fnUntraced(function* () {
      const postgres = yield* OwnPostgres.make
      yield* Effect.provide(loadDemoData(postgres.sql), Reactivity.layer)
      const service = yield* start({ DATABASE_URL: postgres.url })
      yield* traffic(service.port, reads)
      return { services: [service] as const, ...ways(postgres) }
    })
  })

/** A port in front of a database that can be cut. */
const proxied = Effect.fnUntraced(function* (url: string) {
  const { hostname, port } = new URL(url)
  const proxy = yield* TcpProxy.make({ host: hostname, port: Number(port) })
  return { proxy, url: Object.assign(new URL(url), { hostname: proxy.host, port: String(proxy.port) }).href }
})

export const databases: ReadonlyArray<Fault> = [
  ofItsOwn({ name: "store-down", done: "Postgres is stopped" }, ({ start: again, stopImmediately }) => ({
    begin: stopImmediately,
    heal: again
  })),
  ofItsOwn({ name: "store-hangs", done: "Postgres is paused (SIGSTOP)" }, (postgres) => ({
    begin: signalAll(postgres, "SIGSTOP"),
    heal: signalAll(postgres, "SIGCONT")
  })),
  make({
    name: "key-store-down",
    done: "The Postgres of the API keys alone refuses connections",
    seen: {
      alert: "PracticeDataDatabaseDown",
      says: "The credentials database does not answer",
      log: /The credential store cannot be reached/,
      health: problemOf("credentials")
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const keys = yield* proxied(url)
      const service = yield* start({ DATABASE_URL: url, CREDENTIALS_DATABASE_URL: keys.url })
      yield* traffic(service.port, everyday)
      return { services: [service] as const, begin: keys.proxy.cut("refuse"), heal: keys.proxy.mend }
    })
  }),
  make({
    name: "table-locked",
    done: "Somebody holds a lock on one table",
    seen: {
      alert: "PracticeDataDatabaseBusy",
      says: "a lock is held",
      also: ["PracticeDataErrors", "PracticeDataPoolWaits", "PracticeDataOverloaded", "PracticeDataSlow"]
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { sql, url } = yield* ground.demo
      const service = yield* start({ DATABASE_URL: url })
      yield* traffic(service.port, everyday)
      const connection = yield* sql.reserve
      const run = (statement: string) => connection.executeUnprepared(statement, [], undefined)
      return {
        services: [service] as const,
        begin: Effect.andThen(run("begin"), run("lock table charges in access exclusive mode")),
        heal: run("rollback")
      }
    })
  }),
  make({
    name: "not-migrated",
    done: "A start on a database that lacks the migrations",
    seen: {
      alert: "PracticeDataNotReady",
      says: "is not ready",
      log: /is not migrated. Run: /,
      health: /"ready":false/,
      // It is away while it is restarted.
      also: ["PracticeDataDown"]
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { sql, url } = yield* ground.empty
      const scope = yield* Effect.scope
      const service = yield* start({ DATABASE_URL: url })
      const later: Array<Watched> = []
      return {
        services: [service] as const,
        later,
        begin: Effect.gen(function* () {
          yield* sql`alter table migrations rename to migrations_of_another_time`
          yield* service.kill("SIGKILL")
          yield* service.ended
          later.push(yield* startAgain(service, { DATABASE_URL: url }))
        }).pipe(Effect.provideService(Scope.Scope, scope)),
        heal: sql`alter table migrations_of_another_time rename to migrations`
      }
    })
  })
]
