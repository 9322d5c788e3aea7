/** The stop of a listener: virtual time for its grace, real sockets. */
import { assert, it } from "@effect/vitest"
import { Clock, Context, Deferred, Duration, Effect, Fiber, Layer } from "effect"
import { HttpServer, HttpServerResponse } from "effect/http"
import { TestClock } from "effect/testing"
import { Listener } from "../../../src/http/Listener.ts"
import { eventually } from "../../support/eventually.ts"
import { samples, withRegistry } from "../../support/metrics.ts"
import * as Raw from "../../support/Raw.ts"

const minute = Duration.minutes(1)
const limits = { maxConnections: 10, headersTimeout: minute, bodyTimeout: minute, idleTimeout: minute }

it.live("A listener that stops closes the connections of unfinished requests after 10 seconds", () =>
  Effect.gen(function* () {
    const options = { host: "127.0.0.1", port: 0, isMeasured: true, ...limits }
    const context = yield* Layer.build(Listener.layer(options))
    const { address, serve } = Context.get(context, HttpServer.HttpServer)
    const answered = yield* Deferred.make<void>()
    yield* serve(Effect.as(Deferred.await(answered), HttpServerResponse.empty()))
    const { send, socket } = yield* Raw.open(`http://127.0.0.1:${address._tag === "InetAddressV4" ? address.port : 0}`)
    yield* send(Raw.get("/"))
    yield* eventually(
      "a request in flight",
      Effect.map(samples, (all) => all["practice_data_http_requests_in_flight"] === 1)
    )

    const clock = yield* TestClock.make()
    const draining = yield* Effect.forkChild(
      Effect.provideService(Context.get(context, Listener).drain(Duration.zero), Clock.Clock, clock)
    )
    let tenths = 0
    for (; !socket.closed && tenths < 300; tenths++) {
      yield* Effect.sleep("5 millis")
      yield* clock.adjust("100 millis")
    }
    assert.isAtLeast(tenths, 100)
    assert.isAtMost(tenths, 110)
    yield* Fiber.join(draining)
    yield* Deferred.succeed(answered, undefined)
  }).pipe(Effect.scoped, withRegistry)
)
