/** Bodies that cost more to refuse than to send. */
import { Effect } from "effect"
import { attack, bounds, measureBaseline, type Result } from "../hostile/attack.ts"
import { kinds, known } from "../hostile/bodies.ts"
import { atMost, note, make, verdict } from "../Scenario.ts"
import * as Service from "../support/Service.ts"

export const hostileBodies = make({
  name: "hostile-bodies",
  done: `15 senders at once, 5 of whom do not read, send ${known.join("; ")}`,
  promise: `another request waits 100 ms at most (pass: ${bounds.wait}), a refusal has 64 KiB at most, no process ends`,
  run: Effect.fnUntraced(function* ({ demo, seed }) {
    const { url } = yield* demo
    const service = yield* Service.start({ DATABASE_URL: url, DELETION_DELAY: "1 day" })
    yield* measureBaseline(service)
    const baseline = yield* measureBaseline(service)
    const results: Array<Result> = []
    for (const kind of kinds.filter(({ name }) => known.includes(name))) {
      const result = yield* attack(service, kind, seed, baseline)
      results.push(result)
      // What comes after it would be measured on a service that is still busy with it, or gone.
      if (result.broken.length > 0) break
    }
    return verdict(
      atMost(bounds.wait, "longest wait of a neighbour", Math.max(...results.map(({ longest }) => longest)), " ms"),
      note(`${baseline.longest.toFixed(0)} alone`),
      note(`largest answer ${Math.max(...results.map(({ answerBytes }) => answerBytes))} bytes`),
      note(`peak memory ${Math.max(...results.map(({ peak }) => peak)).toFixed(0)} MiB`),
      ...results
        .filter(({ broken }) => broken.length > 0)
        .map(({ broken, kind }) => ({ text: `${kind}: ${broken.join(", ")}`, isKept: false }))
    )
  })
})
