/** The Postgres takes everything and answers nothing. */
import { Effect } from "effect"
import { atLeast, atMost, note, make, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import { recovery } from "../support/recovery.ts"
import * as Service from "../support/Service.ts"

/** Within how many milliseconds each is answered while the store hangs. */
const bounds = { deliveries: 2000, reads: 6000 } as const

/** What a busy machine adds, in milliseconds. */
const allowance = 500

const search = Service.search("charges", { limit: 2 })
const delivery = Service.delivery("store-hangs")

export const storeHangs = make({
  name: "store-hangs",
  done: "Postgres is paused (SIGSTOP) for 8 s under 25 searches and 25 deliveries at once, then goes on",
  promise: "503 within 2 s for a delivery and 6 s for a read, well again within 1 s (pass: 2)",
  run: Effect.fnUntraced(function* ({ demo, power }) {
    const { url } = yield* demo
    const service = yield* Service.start({ DATABASE_URL: url })
    const plan = { ports: [service.port], callers: 25, pause: 20, patience: 15_000, keepAlive: true } as const
    yield* Callers.run({ ...plan, requests: [search, delivery], total: 200 })
    yield* power.pause
    const reads = yield* Callers.start({ ...plan, requests: [search] })
    const deliveries = yield* Callers.start({ ...plan, requests: [delivery] })
    yield* Effect.sleep("8 seconds")
    const report = { reads: yield* reads.stop, deliveries: yield* deliveries.stop }
    const well = yield* recovery(service.port, [search, delivery], power.resume)
    const wrong = Callers.unlike([...report.reads, ...report.deliveries], (status) => status === 503)
    return verdict(
      atMost(bounds.deliveries + allowance, "slowest delivery", Callers.longest(report.deliveries), " ms"),
      atMost(bounds.reads + allowance, "slowest read", Callers.longest(report.reads), " ms"),
      atLeast(25, "answers to deliveries", report.deliveries.length),
      atLeast(25, "answers to reads", report.reads.length),
      atMost(0, "answers other than 503:", wrong.length),
      wrong.length > 0 ? note(Callers.tally(wrong)) : note(""),
      atMost(2000, "well again after", well, " ms")
    )
  })
})
