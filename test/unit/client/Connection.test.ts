/** The retries of the typed client. */
import { assert, it } from "@effect/vitest"
import { Clock, Effect, Fiber } from "effect"
import { TestClock } from "effect/testing"
import { connect } from "../../../src/client/Connection.ts"

/** Reads a record of a service that responds so. Returns the times of its requests, in seconds, and the end. */
const requestsOf = Effect.fnUntraced(function* (retries: number | undefined, respond: (request: number) => Response) {
  const clock = yield* Clock.Clock
  const times: Array<number> = []
  const fetch = () => Promise.resolve(respond(times.push(clock.currentTimeMillisUnsafe() / 1000)))
  const { client } = yield* connect({ baseUrl: "http://service", apiKey: "key", retries, fetch })
  const reading = yield* Effect.forkScoped(Effect.flip(client.charges.get({ payload: { id: "a" } })))
  yield* Effect.repeat(TestClock.adjust("100 millis"), { until: () => reading.pollUnsafe() !== undefined, times: 999 })
  return { times, error: yield* Fiber.join(reading) }
})

const busy = (seconds: number) =>
  Response.json(
    { detail: "Busy" },
    { status: 503, headers: { "x-error": "record_store_down", "retry-after": `${seconds}` } }
  )

it.effect("a request is retried four times, ever later, and fails with the last error", () =>
  Effect.gen(function* () {
    const { error, times } = yield* requestsOf(undefined, () => busy(0))
    assert.lengthOf(times, 5)
    assert.isAbove(times.at(-1) ?? 0, 5)
    assert.deepInclude(error, { _tag: "RecordStoreDown", detail: "Busy" })
  })
)

it.effect("a retry is never before Retry-After, and an error that it does not help has none", () =>
  Effect.gen(function* () {
    const missing = Response.json({ detail: "None" }, { status: 404, headers: { "x-error": "record_not_found" } })
    const { error, times } = yield* requestsOf(1, (request) => (request === 1 ? busy(7) : missing))
    assert.lengthOf(times, 2)
    assert.isAtLeast(times[1] ?? 0, 7)
    assert.strictEqual(error._tag, "RecordNotFound")
  })
)
