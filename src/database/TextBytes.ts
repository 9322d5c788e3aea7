/**
 * Text that is only passed on. It comes from the database as its bytes, UTF-8, so that nobody decodes and encodes it.
 *
 * A statement asks for it by a cast to `bpchar`, which costs nothing: without a length it is text, and no column has it.
 * The parser of the client never writes to a buffer again, so the bytes are views into what was received.
 */
import { PgTypes } from "@effect/sql-pg"
import { Result } from "effect"

const codec: PgTypes.Codec<Uint8Array> = {
  encode: Result.succeed,
  decode: Result.succeed,
  read: ({ buffer, byteOffset }, offset, size) => Result.succeed(new Uint8Array(buffer, byteOffset + offset, size))
}

/** The SQL of a column of text as bytes, under its own name. */
export const bytesOf = (column: string): string => `${column}::bpchar as ${column.split(".").at(-1)}`

/** The types of a client whose statements cast to `bpchar`. */
export const types = PgTypes.makeRegistry()
types.register(PgTypes.OID.bpchar, codec)
