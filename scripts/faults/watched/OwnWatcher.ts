/** Scrapes and evaluates as Prometheus does, for a machine that has none. */
import { Array, Clock, Effect, Option } from "effect"
import { FetchHttpClient, HttpClient, HttpClientResponse } from "effect/http"
import { make as makeRules, type Active } from "../../../test/support/promql/Rules.ts"
import { type Exposed, readText, Store } from "../../../test/support/promql/Series.ts"
import { job, scrapeInterval } from "../../operations/Alert.ts"
import { alerts } from "../../operations/alerts.ts"
import type { Watcher } from "./Watcher.ts"

/** As long as the longest range of the alerts that the faults need, in seconds. */
const keep = 1800

const seconds = Effect.map(Clock.currentTimeMillis, (millis) => millis / 1000)

/** The metrics of a target, or none. */
const scrape = (instance: string) =>
  HttpClient.get(`http://${instance}/metrics`).pipe(
    Effect.flatMap(HttpClientResponse.filterStatusOk),
    Effect.flatMap(({ text }) => text),
    Effect.timeout("2 seconds"),
    Effect.option,
    Effect.provide(FetchHttpClient.layer)
  )

/** Starts it. It is gone when the scope closes. */
export const make = Effect.gen(function* () {
  const store = new Store(keep)
  let active: ReadonlyArray<Active> = []
  const evaluate = yield* Effect.fromResult(makeRules(alerts))

  yield* Effect.gen(function* () {
    active = yield* Effect.fromResult(evaluate(store.all(), yield* seconds))
  }).pipe(Effect.delay("1 second"), Effect.forever, Effect.forkScoped)

  const follow = Effect.fnUntraced(function* (fault: string, instance: string) {
    const target = { job, instance, fault }
    const once = Effect.gen(function* () {
      const at = yield* seconds
      const text = yield* scrape(instance)
      const up: Exposed = { labels: { ...target, __name__: "up" }, value: Option.isSome(text) ? 1 : 0 }
      const told = Array.map(readText(Option.getOrElse(text, () => "")), ({ labels, value }) => ({
        labels: { ...target, ...labels },
        value
      }))
      store.add(instance, at, [...told, up])
    })
    yield* Effect.repeat(Effect.andThen(once, Effect.sleep(scrapeInterval * 1000)), { while: () => true }).pipe(
      Effect.ensuring(Effect.map(seconds, (at) => store.add(instance, at, []))),
      Effect.forkScoped
    )
  })

  const watcher: Watcher = {
    name: "our evaluator",
    watch: (fault, ports) => Effect.forEach(ports, (port) => follow(fault, port), { discard: true }),
    firing: (fault) => Effect.sync(() => active.filter(({ isFiring, labels }) => isFiring && labels["fault"] === fault))
  }
  return watcher
})
