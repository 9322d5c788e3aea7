/** Tells nothing but what somebody should know of, on standard error. */
import { Console, Effect, Layer } from "effect"
import { Progress } from "./Progress.ts"

export const layer = Layer.succeed(Progress, {
  report: (event) => (event._tag === "Note" ? Console.error(event.message) : Effect.void)
})
