/** The flag `--organization`, and what follows where an organization is not there yet. */
import { Effect, Option, Schema } from "effect"
import { Flag } from "effect/cli"
import { TaskDatabase } from "../database/Database.ts"
import * as Output from "./Output.ts"

const longest = 128

/** A text of one line, without white space around it. */
export const Line = (what: string) =>
  Schema.String.check(
    Schema.makeFilter(
      (text) =>
        text.length > 0 &&
        text.length <= longest &&
        text.trim() === text &&
        text.isWellFormed() &&
        !/\p{Cc}/u.test(text),
      { message: `Expected ${what}: 1 to ${longest} characters on one line, without white space around them` }
    )
  )

/** The id of an organization, as the intake takes it in a header. */
export const organization = Flag.String("organization").pipe(
  Flag.withSchema(Line("the id of an organization")),
  Flag.withDescription("Id of the organization (required)")
)

/** The organization that a list is of; of all without it. */
export const ofOne = (what: string) =>
  Flag.optional(Flag.withDescription(organization, `Only ${what} of the organization with this id`))

/** Says what follows from it when the organization has no row in the table of organizations. */
export const noteIfUnknown = Effect.fnUntraced(function* (id: string, consequence: string) {
  const sql = yield* TaskDatabase
  // Whether it is there decides nothing, so that not knowing it is no failure.
  const found = yield* Effect.option(sql`select 1 from organizations where organization_id = ${id}`)
  if (Option.exists(found, (rows) => rows.length === 0)) {
    yield* Output.note(`There is no organization ${id} in the table organizations yet. ${consequence}`)
  }
})
