/** One key asks for all that it can; the neighbour with another key asks for little. */
import { Effect, type Scope } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { atLeast, atMost, note, make, verdict } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import { type Ground, largeCount } from "../support/Ground.ts"
import * as Service from "../support/Service.ts"

const greedy = 64

interface Greed {
  readonly name: string
  readonly done: string
  readonly requests: Callers.Plan["requests"]
  /** What is done to the database meanwhile. */
  readonly around?: (ground: Ground) => Effect.Effect<void, SqlError, Scope.Scope>
}

const offsets = [0.5, 0.6, 0.7, 0.8, 0.9].map((part) => Math.round(part * largeCount))

/** Locks a table that the neighbour does not read, until the scope closes. */
const lockCharges = ({ large }: Ground) =>
  Effect.gen(function* () {
    const { sql } = yield* large
    const connection = yield* sql.reserve
    yield* Effect.acquireRelease(connection.executeUnprepared("begin", [], undefined), () =>
      Effect.orDie(connection.executeUnprepared("rollback", [], undefined))
    )
    yield* connection.executeUnprepared("lock table charges in access exclusive mode", [], undefined)
  })

const greeds: ReadonlyArray<Greed> = [
  {
    name: "fair-share-pages",
    done: `pages of 1,000`,
    requests: [Service.search("consumption-logs", { limit: 1000 })]
  },
  {
    name: "fair-share-offsets",
    done: `deep offsets`,
    requests: [
      Service.search("consumption-logs", { limit: 100, offset: offsets[0] }),
      ...offsets.slice(1).map((offset) => Service.search("consumption-logs", { limit: 100, offset }))
    ]
  },
  {
    name: "fair-share-lock",
    done: `a table that somebody has locked`,
    requests: [Service.search("charges")],
    around: lockCharges
  }
]

const fairShare = ({ name, done, requests, around }: Greed) =>
  make({
    name,
    done: `${greedy} requests of one key in flight all the time: ${done}. A neighbour searches with another key`,
    promise: "the neighbour waits 25 ms in the median and 250 ms at most",
    run: Effect.fnUntraced(function* (ground) {
      const { url } = yield* ground.large
      const { port } = yield* Service.start({ DATABASE_URL: url })
      yield* Callers.run({
        ports: [port],
        requests: [...requests, ...Service.neighbourly],
        callers: 8,
        total: 60,
        patience: 30_000,
        keepAlive: true
      })
      const alone = yield* Effect.scoped(
        Effect.gen(function* () {
          const neighbour = yield* Callers.startNeighbour(port, Service.neighbourly)
          yield* Effect.sleep("2 seconds")
          return yield* neighbour.stop
        })
      )
      yield* around?.(ground) ?? Effect.void
      const others = yield* Callers.start({
        ports: [port],
        requests,
        callers: greedy,
        patience: 30_000,
        keepAlive: true
      })
      yield* Effect.sleep("500 millis")
      const neighbour = yield* Callers.startNeighbour(port, Service.neighbourly)
      yield* Effect.sleep("6 seconds")
      const beside = yield* neighbour.stop
      const greed = yield* others.stop
      return verdict(
        atMost(25, "median", Callers.median(beside), " ms"),
        atMost(250, "longest", Callers.longest(beside), " ms"),
        atMost(0, "failed", Callers.unlike(beside, Callers.isGood).length),
        atLeast(10, "of", beside.length),
        note(`alone ${Callers.median(alone).toFixed(1)} and ${Callers.longest(alone).toFixed(0)} ms`),
        note(`the other key: ${Callers.tally(greed)}`)
      )
    })
  })

export const fairShares = greeds.map(fairShare)
