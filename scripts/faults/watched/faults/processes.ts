/** Processes that die, stand still, or are stopped in good order. */
import { Effect, Scope } from "effect"
import { eventually } from "../../../../test/blackbox/support/eventually.ts"
import * as Ledger from "../../../../test/faults/support/Ledger.ts"
import * as Proc from "../../support/Proc.ts"
import * as Service from "../../support/Service.ts"
import { everyday, type Fault, healed, make, start, startAgain, traffic } from "../Fault.ts"

/** Two processes behind one port. */
const two = Effect.fnUntraced(function* (url: string) {
  const service = yield* start({ DATABASE_URL: url, PROCESSES: "2", DATABASE_POOL_SIZE: "4" })
  yield* eventually(
    "two processes",
    Effect.map(Proc.children(service.pid), ({ length }) => length === 2)
  )
  yield* traffic(service.port, everyday)
  const one = Effect.map(Proc.children(service.pid), ([pid = 0]) => pid)
  return { service, one }
})

export const processes: ReadonlyArray<Fault> = [
  make({
    name: "killed",
    done: "The service is killed with -9",
    seen: { alert: "PracticeDataDown", says: "does not answer" },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const scope = yield* Effect.scope
      const service = yield* start({ DATABASE_URL: url })
      yield* traffic(service.port, everyday)
      const again = startAgain(service, { DATABASE_URL: url }).pipe(Effect.provideService(Scope.Scope, scope))
      return { services: [service] as const, begin: service.kill("SIGKILL"), heal: again }
    })
  }),
  make({
    name: "paused",
    done: "The service is paused (SIGSTOP)",
    seen: { alert: "PracticeDataDown", says: "hangs" },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const service = yield* start({ DATABASE_URL: url })
      yield* traffic(service.port, everyday)
      yield* Effect.addFinalizer(() => service.kill("SIGCONT"))
      return { services: [service] as const, begin: service.kill("SIGSTOP"), heal: service.kill("SIGCONT") }
    })
  }),
  make({
    name: "process-killed",
    done: "PROCESSES=2; one of the two is killed with -9",
    seen: {
      alert: "PracticeDataProcessEnded",
      says: "ended and was replaced",
      log: /A process ended with .*SIGKILL/,
      // Its tasks are taken over, and a replacement that starts for longer than two scrapes is missing.
      also: ["PracticeDataTakeovers", "PracticeDataProcessMissing"]
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const { one, service } = yield* two(url)
      return {
        services: [service] as const,
        begin: Effect.flatMap(one, (pid) => Proc.signal(pid, "SIGKILL")),
        heal: healed
      }
    })
  }),
  make({
    name: "process-paused",
    done: "PROCESSES=2; one of the two is paused (SIGSTOP)",
    seen: {
      alert: "PracticeDataProcessEnded",
      says: "ended and was replaced",
      log: /did not answer for 3 seconds/,
      also: ["PracticeDataTakeovers", "PracticeDataProcessMissing"]
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const { one, service } = yield* two(url)
      return {
        services: [service] as const,
        begin: Effect.flatMap(one, (pid) => Proc.signal(pid, "SIGSTOP")),
        heal: healed
      }
    })
  }),
  make({
    name: "takeover",
    done: "A worker with 64 tasks under way is killed with -9, and another one goes on",
    seen: {
      alert: "PracticeDataTakeovers",
      says: "took over",
      also: ["PracticeDataDown", "PracticeDataDeletionsLate"],
      log: /takeover|taken over|took over/i
    },
    stand: Effect.fnUntraced(function* (ground) {
      const { sql, url } = yield* ground.empty
      const scope = yield* Effect.scope
      yield* Ledger.open(sql, 64)
      const first = yield* start({ DATABASE_URL: url, ROLES: "worker" })
      const connection = yield* sql.reserve
      const run = (statement: string) => connection.executeUnprepared(statement, [], undefined)
      const running = eventually(
        "the first worker has them all",
        Effect.map(
          sql<{ n: number }>`select count(*)::integer as n from deletion_tasks where state = 'running'`,
          ([row]) => row?.n === 64
        )
      )
      const second = yield* start({ DATABASE_URL: url, ROLES: "worker" })
      yield* Effect.addFinalizer(() => second.kill("SIGCONT"))
      return {
        services: [second, first] as const,
        begin: Effect.gen(function* () {
          // Nothing that is begun is completed before it is killed, whoever has it.
          yield* run("begin")
          yield* run("lock table invoices in share mode")
          yield* second.kill("SIGSTOP")
          yield* Ledger.scheduleAll(
            sql,
            Array.from({ length: 64 }, (_, index) => index + 1)
          )
          yield* running
          yield* first.kill("SIGKILL")
          yield* second.kill("SIGCONT")
          yield* run("rollback")
        }),
        heal: Effect.provideService(startAgain(first, { DATABASE_URL: url, ROLES: "worker" }), Scope.Scope, scope)
      }
    })
  }),
  make({
    name: "rolling-restarts",
    done: "Two services are stopped by SIGTERM and started again, one after the other",
    seen: undefined,
    stand: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.demo
      const scope = yield* Effect.scope
      const environment = { DATABASE_URL: url, DRAIN: "6 seconds" }
      const services = [yield* start(environment), yield* start(environment)] as const
      yield* Effect.forEach(services, ({ port }) => traffic(port, [Service.ready], { callers: 1 }))
      return {
        services,
        begin: Effect.forEach(services, (service) =>
          Effect.gen(function* () {
            yield* service.kill("SIGTERM")
            yield* service.ended
            yield* Effect.provideService(startAgain(service, environment), Scope.Scope, scope)
          })
        ),
        heal: healed
      }
    })
  })
]
