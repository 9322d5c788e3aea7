/** A started service as readers ask it. */
import { Effect, Schedule } from "effect"
import * as Client from "../../../test/support/Client.ts"
import * as Process from "../../../test/support/Process.ts"
import { type Answer, type Ask, Refused } from "./Service.ts"

/** How much is told of what a service wrote that does not answer. */
const shown = 4000

/** Starts a service, which is gone when the scope closes. */
export const start = Effect.fnUntraced(function* (environment: Process.Environment) {
  const process = yield* Process.start(environment)
  const client = yield* Client.make(yield* process.address, 16)
  const call = (request: Client.Call): Effect.Effect<Answer, Refused> =>
    Effect.repeat(client.call(request), {
      while: ({ status }) => status === 503,
      schedule: Schedule.spaced("100 millis"),
      times: 600
    }).pipe(
      Effect.mapError(
        ({ cause }) => new Refused({ message: `No answer: ${String(cause)} ${process.output().slice(-shown)}` })
      )
    )
  const ask: Ask = (path, key, body) =>
    call({ path, headers: { authorization: `Bearer ${key}`, "content-type": "application/json" }, body })
  return ask
})
