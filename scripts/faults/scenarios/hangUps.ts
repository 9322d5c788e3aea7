/** Callers who hang up, on the embedded database. */
import { Array, Effect, Random } from "effect"
import { atLeast, atMost, note, make, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import * as Http1 from "../support/Http1.ts"
import * as Service from "../support/Service.ts"
import * as Sockets from "../support/Sockets.ts"

const callers = 150

const request = Http1.bytesOf(Service.search("consumption-logs", { limit: 100 }))

/** Sends a part of a request or all of it, waits a moment or not, and is gone without a word. */
const hangUp = (port: number) =>
  Effect.gen(function* () {
    const socket = yield* Sockets.open(port)
    const sent = yield* Random.choice([0, 40, request.length - 5, request.length, request.length, request.length])
    socket.write(request.subarray(0, sent))
    yield* Effect.sleep(yield* Random.nextBetween(0, 120))
    if (yield* Random.nextBoolean) socket.resetAndDestroy()
    else socket.destroy()
  }).pipe(Effect.scoped)

export const hangUps = (rounds: number) =>
  make({
    name: "hang-ups",
    done: `Embedded database: ${callers} callers hang up at random points of their requests, ${rounds} rounds. A neighbour searches meanwhile and after`,
    promise: "the neighbour gets no 5xx and waits 100 ms at most (pass: 250)",
    run: Effect.fnUntraced(function* ({ seed }) {
      const { port } = yield* Service.start({ DATA_DIR: "memory" })
      const patience = 20_000
      yield* Callers.run({
        ports: [port],
        requests: Service.neighbourly,
        callers: 4,
        total: 100,
        patience,
        keepAlive: true
      })
      const neighbour = yield* Callers.startNeighbour(port, Service.neighbourly, { patience })
      const round = Effect.forEach(
        Array.makeBy(callers, () => port),
        hangUp,
        { concurrency: "unbounded", discard: true }
      )
      yield* Random.withSeed(
        Effect.repeat(Effect.andThen(round, Effect.sleep("500 millis")), { times: rounds - 1 }),
        `${seed} hang-ups`
      )
      // Whoever waits must have an answer before the neighbour ends.
      yield* Effect.sleep("5500 millis")
      const report = yield* neighbour.stop
      const wrong = Callers.unlike(report, Callers.isGood)
      return verdict(
        atMost(0, "answers other than 200:", wrong.length),
        wrong.length > 0 ? note(Callers.tally(wrong)) : note(""),
        atLeast(100, "of", report.length),
        note(`median ${Callers.median(report).toFixed(1)} ms`),
        atMost(250, "longest", Callers.longest(report), " ms")
      )
    })
  })
