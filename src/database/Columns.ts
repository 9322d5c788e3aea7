/** Columns and rows of results: times as text, JSON as bytes, and rows that a schema checks. */
import { Buffer } from "node:buffer"
import { PgTypes } from "@effect/sql-pg"
import { type Context, Effect, Result, Schema } from "effect"
import { type Constructor, join } from "effect/sql/Statement"

export const unionAll = join(" union all ", false)

/** A column of times as the API writes them: UTC, with milliseconds. It keeps its name. */
export const isoTime = (column: string) =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column.slice(column.indexOf(".") + 1)}`

/**
 * A column of text as UTF-8 bytes, for text that is only passed on. It keeps its name. The cast to `bpchar` costs nothing:
 * without a length it is text, and no column has this type.
 */
export const asBytes = (column: string): string => `${column}::bpchar as ${column.split(".").at(-1)}`

/** The types of a client whose statements use `asBytes`. */
export const types = PgTypes.makeRegistry()
types.register<Uint8Array>(PgTypes.OID.bpchar, {
  encode: Result.succeed,
  decode: Result.succeed,
  // The parser of the client never writes to a buffer again, so these are views into the received bytes.
  read: ({ buffer, byteOffset }, offset, size) => Result.succeed(new Uint8Array(buffer, byteOffset + offset, size))
})

/** The JSON of stored records, as UTF-8 bytes: it is concatenated, and never parsed. */
export type Json = Uint8Array

export const fromText = (text: string): Json => Buffer.from(text)

export const toText = ({ buffer, byteLength, byteOffset }: Json): string =>
  Buffer.from(buffer, byteOffset, byteLength).toString()

const comma = fromText(",")

/** Concatenates items, with a comma between two of them. */
export const concat = (before: string, items: ReadonlyArray<Json>, after: string): Json => {
  const parts = [fromText(before)]
  for (const item of items) parts.push(item, comma)
  if (items.length > 0) parts.pop()
  parts.push(fromText(after))
  return Buffer.concat(parts)
}

/** Checks the rows of a statement that decides something. Rows of another form are a defect. */
export const decodeRows = <A>(schema: Schema.Decoder<A>) => {
  const decode = Schema.decodeUnknownEffect(Schema.Array(schema))
  return <E, R>(statement: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
    Effect.flatMap(statement, (rows) => Effect.orDie(decode(rows)))
}

const texts = decodeRows(Schema.Struct({ text: Schema.String }))

/** The values of a statement's only column, `text`. */
export const decodeTexts = <E, R>(statement: Effect.Effect<ReadonlyArray<unknown>, E, R>) =>
  Effect.map(texts(statement), (rows) => rows.map(({ text }) => text))

/** The fields of a credential, as operators see it. Times are ISO 8601 in UTC. */
export const credential = {
  organization_id: Schema.String,
  id: Schema.String,
  created_at: Schema.String,
  revoked_at: Schema.NullOr(Schema.String)
}

/** Lists the rows of credentials, without the credentials themselves: those of an organization, or all, oldest first. */
export const listCredentials =
  <I, S extends Constructor, A>(database: Context.Key<I, S>, table: string, schema: Schema.Decoder<A>, columns = "") =>
  (organization: string | undefined) =>
    Effect.flatMap(database, (sql) => {
      const rows = sql`
        select organization_id, id, ${sql.literal(`${columns}${isoTime("created_at")}, ${isoTime("revoked_at")}`)}
        from ${sql.literal(table)}
        where ${organization === undefined ? sql`true` : sql`organization_id = ${organization}`}
        order by ${sql.literal(table)}.created_at, id`
      return decodeRows(schema)(rows.unprepared)
    })
