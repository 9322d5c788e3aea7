/** Tells nothing but what somebody should know of, on standard error. */
import { Effect, Layer } from "effect"
import { note } from "../../../process/Printed.ts"
import { Progress } from "./Progress.ts"

export const layer = Layer.succeed(Progress, {
  report: (event) => (event._tag === "Note" ? note(event.message) : Effect.void)
})
