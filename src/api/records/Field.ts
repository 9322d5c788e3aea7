/** The types of the fields of records, with their JSON forms. A field is always present; null stands for no value. */
import { Schema, SchemaTransformation } from "effect"

const describe = <T>(description: string, example: T) => ({ description, examples: [example] as const })

const examples: Readonly<Record<string, string>> = {
  org: "org_oakridge",
  clinic: "clinic_oakridge_01",
  line: "line_oakridge_0001_1"
}
const exampleId = (prefix: string) => examples[prefix] ?? `${prefix}_oakridge_0001`

/** The schema of a record, as clients see it. */
export const record = <const Each extends Fields>(identifier: string, description: string, fields: Each) =>
  Schema.Struct(fields).annotate({ identifier, description })

/** The record's own identifier. Never null. */
export const id = (prefix: string) => Schema.String.annotate(describe("Identifier of the record.", exampleId(prefix)))

/** The identifier of a record whose `id` has this prefix. */
export const ref = (prefix: string, description: string) =>
  Schema.NullOr(Schema.String.annotate(describe(description, exampleId(prefix))))

export const text = (description: string, example: string) =>
  Schema.NullOr(Schema.String.annotate(describe(description, example)))

/** A list of texts, possibly empty. Never null. */
export const texts = (description: string, example: ReadonlyArray<string>) =>
  Schema.Array(Schema.String).annotate(describe(description, example))

/** A decimal of at most 15 significant digits, exactly as it is stored. */
export const number = (description: string, example: number) =>
  Schema.NullOr(Schema.Finite.annotate(describe(description, example)))

const int32 = Schema.Int.check(Schema.isBetween({ minimum: -2147483648, maximum: 2147483647 }))

/** An integer of 32 bits. */
export const integer = (description: string, example: number) =>
  Schema.NullOr(int32.annotate(describe(description, example)))

/** A boolean. Never null. */
export const boolean = (description: string) => Schema.Boolean.annotate({ description })

/** A point in time that every record has. Never null. */
export const timestamp = (description: string) =>
  Schema.String.annotate({ ...describe(description, "2026-01-31T09:30:00.000Z"), format: "date-time" }).pipe(
    Schema.decodeTo(Schema.DateTimeUtc, SchemaTransformation.dateTimeUtcFromString)
  )

/** A point in time, as `2026-01-31T09:30:00.000Z`: always UTC, always milliseconds. */
export const dateTime = (description: string) => Schema.NullOr(timestamp(description))

/** The time of creation. Never null. */
export const createdAt = timestamp("Time of the creation.")

/** The times that nearly every record has. */
export const times = {
  created_at: createdAt,
  updated_at: timestamp("Time of the last change. Results are ordered by it.")
}

/** A day of the calendar, as `2026-01-31`. */
export const date = (description: string) =>
  Schema.NullOr(
    Schema.String.annotate({ ...describe(description, "2019-04-12"), format: "date" }).check(
      Schema.isPattern(/^\d{4}-\d{2}-\d{2}$/)
    )
  )

/** `wellnes_plan_name`, in the contract's spelling. */
export const planName = text(
  "Plan name, species and the clinic's plan header, joined by one space; blank parts are left out.",
  "Gold Canine Wellness"
)

/** The parts of a plan name: stored, and not shown. */
export const planNameParts = {
  plan_name: text("First part of `wellnes_plan_name`.", "Gold"),
  species: text("Second part of `wellnes_plan_name`.", "Canine"),
  plan_header: text("Third part of `wellnes_plan_name`: the clinic's plan header.", "Wellness")
}

/** The column of a field: its name in snake case. */
export const columnName = (field: string) => field.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase()

/** Fields by name, none of which needs a service to be read or written. */
export type Fields = Readonly<Record<string, Schema.Codec<unknown, unknown>>>
