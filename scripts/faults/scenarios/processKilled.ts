/** One of the processes that share the port is killed, again and again. */
import { Effect, Random } from "effect"
import { atMost, atLeast, note, make, skip, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import { eventually } from "../../../test/blackbox/support/eventually.ts"
import * as Proc from "../support/Proc.ts"
import * as Service from "../support/Service.ts"

/** How long a request may take that nobody answers any more, in milliseconds. */
const patience = 2000

export const processKilled = (kills: number) =>
  make({
    name: "process-killed",
    done: `PROCESSES=2; one of the two is killed with -9, ${kills} times, under 64 callers who connect for each request`,
    promise: "no request hangs, and the processes share the work (each at least 25 %)",
    run: Effect.fnUntraced(function* ({ demo, seed }) {
      const { url } = yield* demo
      const { pid, port } = yield* Service.start({ DATABASE_URL: url, PROCESSES: "2" })
      const children = Proc.children(pid)
      const areTwo = Effect.map(children, ({ length }) => length === 2)
      const isShared = yield* Effect.isSuccess(Effect.timeout(eventually("two processes", areTwo), "10 seconds"))
      if (!isShared) return skip("PROCESSES=2 starts no two processes")
      yield* Effect.sleep("1 second")

      const plan: Callers.Plan = {
        ports: [port],
        requests: [Service.search("charges", { limit: 1 })],
        callers: 64,
        patience,
        keepAlive: false
      }
      const cpu = Effect.flatMap(children, (pids) => Effect.forEach(pids, Proc.cpuMillis))
      const before = yield* cpu
      yield* Callers.run({ ...plan, during: 4000 })
      const spent = (yield* cpu).map((after, index) => after - (before[index] ?? 0))
      const share = (100 * Math.min(...spent)) / spent.reduce((sum, one) => sum + one, 0)

      const callers = yield* Callers.start(plan)
      const incident = Effect.gen(function* () {
        yield* Effect.sleep(yield* Random.nextBetween(200, 800))
        yield* Proc.signal(yield* Random.choice(yield* children), "SIGKILL")
        yield* eventually("two processes", areTwo)
        yield* Effect.sleep("1500 millis")
      })
      yield* Random.withSeed(Effect.repeat(incident, { times: kills - 1 }), `${seed} children`)
      yield* Effect.sleep(patience)
      const report = yield* callers.stop
      const count = (status: number) => Callers.having(report, (one) => one === status).length
      return verdict(
        atMost(0, "requests that hung", count(Callers.noAnswer.hung)),
        note(`of ${report.length} (in flight in the killed process itself: ${count(Callers.noAnswer.lost)})`),
        note(`connections refused: ${count(Callers.noAnswer.refused)}`),
        atLeast(25, "the smaller share", share, " %")
      )
    })
  })
