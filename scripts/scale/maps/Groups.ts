/** The groups of organizations, each with a Postgres of its own: the file that `maps.ts` reads. */
import { Effect, FileSystem, Schema, SchemaIssue } from "effect"

/** The maps cannot be written; the message says why. Whatever was there before is still there. */
export class MapsRefused extends Schema.TaggedError<MapsRefused>()("MapsRefused", { message: Schema.String }) {}

// What haproxy takes for the name of a backend.
const Name = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_.:-]{1,64}$/))

/** What the file says. */
export const Groups = Schema.Struct({
  /** The database of each group, by the name of its backend in haproxy.cfg. */
  groups: Schema.Record(Name, Schema.Struct({ database: Schema.RedactedFromValue(Schema.NonEmptyString) })),
  /** The organizations that are being moved, each with the group that still serves its reads. */
  moving: Schema.optionalKey(Schema.Record(Schema.String, Name))
})
export type Groups = typeof Groups.Type

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

// What is wrong is told by its place alone: the file has passwords in it, which a parser would quote.
const placesOf = ({ issue }: Schema.SchemaError) =>
  issuesOf(issue)
    .issues.map(({ path = [] }) => path.map(String).join(".") || "the file as a whole")
    .join(", ")

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Groups), { errors: "all", onExcessProperty: "error" })

/** Reads the file. */
export const read = Effect.fnUntraced(function* (path: string) {
  const fs = yield* FileSystem.FileSystem
  const found = yield* Effect.mapError(
    decode(yield* fs.readFileString(path)),
    (error) => new MapsRefused({ message: `${path} is not what groups.json should be: ${placesOf(error)}` })
  )
  const { groups, moving = {} } = found
  const unknown = Object.values(moving).filter((group) => !Object.hasOwn(groups, group))
  if (Object.keys(groups).length === 0) return yield* new MapsRefused({ message: `${path} names no group` })
  if (unknown.length > 0) {
    const message = `${path}: moving names the group ${unknown[0]}, which is none of its groups`
    return yield* new MapsRefused({ message })
  }
  return found
})
