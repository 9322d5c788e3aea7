/** A command that does not do what it was asked. */
import { Schema } from "effect"

/** Nothing was done; the message says why. The process ends with code 1. */
export class Refused extends Schema.TaggedError<Refused>()("Refused", { message: Schema.String }) {}
