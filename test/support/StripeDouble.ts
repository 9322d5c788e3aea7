/**
 * A double of Stripe: a server on a socket of this machine, for Stripe's own client to talk to. It keeps to Stripe's
 * rules, and fails on demand.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import { Context, Effect, Layer } from "effect"
import * as Listening from "./Listening.ts"
import type { Fault } from "./stripe/faults.ts"
import { answerTo, type Rules } from "./stripe/rules.ts"

/** A request that came in. */
interface Seen {
  readonly account: string | undefined
  readonly authorization: string | undefined
}

const seenOf = ({ headers }: IncomingMessage): Seen => ({
  account: headers["stripe-account"]?.toString(),
  authorization: headers.authorization
})

const make = (rules: Rules) =>
  Effect.gen(function* () {
    const faults: Array<Fault> = []
    let seen: Array<Seen> = []
    let count = 0
    let underWay = 0

    const respond = (request: IncomingMessage, response: ServerResponse) => {
      seen.push(seenOf(request))
      underWay += 1
      response.once("close", () => (underWay -= 1))
      response.setHeader("request-id", `req_${++count}`)
      const fault = faults.shift()
      if (fault !== undefined) return fault(response)
      const { status, body } = answerTo(rules, request)
      response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(body))
    }

    const { port } = yield* Listening.on(createServer({ keepAliveTimeout: 0 }, respond))

    return {
      /** Its address. */
      url: new URL(`http://127.0.0.1:${port}`),
      /** Fails the next requests, one each. */
      fail: (...next: ReadonlyArray<Fault>) => Effect.sync(() => void faults.push(...next)),
      /** The requests since the last time of asking. */
      seen: Effect.sync(() => {
        const all = seen
        seen = []
        return all
      }),
      /** How many requests are being answered. */
      underWay: Effect.sync(() => underWay)
    }
  })

export class StripeDouble extends Context.Service<StripeDouble, Effect.Success<ReturnType<typeof make>>>()(
  "practice-data/test/support/StripeDouble"
) {
  static readonly layer = (rules: Rules) => Layer.effect(StripeDouble, make(rules))
}
