/** From a value of a file to the field of COPY, by the schema of the record's field. */
import { Option, Predicate, Result, Schema, SchemaIssue, DateTime } from "effect"
import * as Instant from "../../api/records/Instant.ts"
import { fieldOf } from "../PostgresSession.ts"
import type { ColumnType } from "../sync/Target.ts"

interface Unfit {
  readonly reason: string
}

/** Returns a value as COPY takes it. Texts of a CSV are converted to the type of the field first. */
export type Read = (value: unknown, isText: boolean) => string | Unfit

const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

const cut = (text: string) => (text.length > 100 ? `${text.slice(0, 100)}…` : text)

const decimal = /^[+-]?(\d*)\.?(\d*)(?:e([+-]?\d+))?$/i

/** The reason why a decimal does not fit: JSON shows it as a double, with 15 digits. */
const decimalFault = (text: string): string | undefined => {
  const [, whole = "", fraction = "", exponent = "0"] = decimal.exec(text) ?? []
  const digits = `${whole}${fraction}`.replace(/^0+/, "").replace(/0+$/, "")
  if (digits.length > 15) return "has more than 15 significant digits"
  if (!(Math.abs(Number(text)) < 1e21)) return "must be below 1e21"
  // The exponent of a zero may be anything.
  const scale = fraction.replace(/0+$/, "").length - Number(exponent)
  return digits !== "" && scale > 30 ? "has more than 30 decimals" : undefined
}

const isTrue = /^(true|t|yes|y|on|1)$/i
const isFalse = /^(false|f|no|n|off|0)$/i

const isNumber = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?$/i

/** The number of a text. The text, which no field of numbers takes, if a double would only seem to have all of its digits. */
export const numberOf = (text: string): number | string => {
  const value = Number(text)
  return decimalFault(text) !== undefined && decimalFault(String(value)) === undefined ? text : value
}

const withDigits = (_: string, value: unknown, { source = "" }: { readonly source?: string } = {}) =>
  Predicate.isNumber(value) ? numberOf(source) : value

/** The value of a text of JSON. Any other text stays as it is. */
export const parseJson = (text: string): unknown => {
  try {
    return JSON.parse(text, /\d[\d.]{15}/.test(text) ? withDigits : undefined)
  } catch {
    return text
  }
}

/** The value of a text in a CSV. A text that is none stays as it is, and its schema refuses it. */
const converted = (text: string, type: ColumnType): unknown => {
  switch (type) {
    case "boolean":
      return isTrue.test(text) || (isFalse.test(text) ? false : text)
    case "integer":
    case "numeric":
      return isNumber.test(text) ? Number(text) : text
    case "text[]":
    case "jsonb":
      return parseJson(text)
    default:
      return text
  }
}

// Of days and years at an edge, wide offsets and long fractions, `Instant` decides.
const plainInstant =
  /^(?!0000|0001|9999)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])[T ](?:[01]\d|2[0-3]):[0-5]\d(?::[0-5]\d(?:\.\d{1,9})?)?(?:Z|[+-](?:0\d|1[0-3])(?::?[0-5]\d)?)$/

const local = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d)(?::\d\d(?:\.\d+)?)?)?$/

const inPostgres = (instant: Instant.Instant): string | Unfit => {
  const time = Instant.toPostgres(instant)
  return /^\d{4}-.*\+00$/.test(time) ? time : { reason: "the year must be 1 to 9999" }
}

// Offsets change at full or half hours, so ten minutes have one. A year has 52,560 of them.
const mostOffsets = 200_000

/** The offsets of the times of a wall clock, in milliseconds. Undefined: the clocks skip this time. */
const offsetsOf = (timeZone: DateTime.TimeZone.Named) => {
  const offsets = new Map<string, number | undefined>()
  return (minute: string) => {
    const key = minute.slice(0, 15)
    if (offsets.has(key)) return offsets.get(key)
    const wall = Date.parse(`${minute}Z`)
    const options = { timeZone, adjustForTimeZone: true, disambiguation: "earlier" } as const
    const zoned = DateTime.makeZonedUnsafe(wall, options)
    const offset = DateTime.zonedOffset(zoned)
    // In a gap, it lies beside the time of the clock.
    const found = zoned.epochMilliseconds + offset === wall ? offset : undefined
    if (offsets.size === mostOffsets) offsets.clear()
    offsets.set(key, found)
    return found
  }
}

type LocalTimes = Readonly<{ timeZone: DateTime.TimeZone.Named; offsetOf: ReturnType<typeof offsetsOf> }>

/** A point in time as Postgres reads it. */
const timeOf = (text: string, times: LocalTimes | undefined): string | Unfit => {
  if (plainInstant.test(text)) return text
  const instant = Instant.parse(text)
  if (Result.isFailure(instant)) return { reason: instant.failure }
  const [, day, minute = "00:00"] = local.exec(text) ?? []
  if (day === undefined) return inPostgres(instant.success)
  if (times === undefined) return { reason: "has no time zone: add an offset, such as Z, or use --time-zone" }
  const offset = times.offsetOf(`${day}T${minute}`)
  if (offset === undefined) return { reason: `does not exist in ${DateTime.zoneToString(times.timeZone)}` }
  return inPostgres(instant.success - Instant.fromMillis(offset))
}

const isDay = (text: string) => /^\d{4}-\d\d-\d\d$/.test(text) && Result.isSuccess(Instant.parse(text))

const textFault = (text: string) => {
  if (text.includes("\0")) return "contains U+0000"
  return text.isWellFormed() ? undefined : "is not well-formed Unicode"
}

/** The reason why the database would refuse a value that its schema accepts. */
const faultOf = (value: unknown, text: string, type: ColumnType): string | undefined => {
  switch (type) {
    case "text":
      return textFault(text)
    case "text[]":
    case "jsonb":
      return textFault(JSON.stringify(value).includes(String.raw`\u0000`) ? "\0" : [value].flat().join(""))
    case "numeric":
      return text.length <= 15 && !text.includes("e") && !text.includes("E") ? undefined : decimalFault(text)
    case "date":
      return isDay(text) ? undefined : "is not a valid date"
    default:
      return undefined
  }
}

/** Most columns have few different values. Reading them again would cost a third more for a row. */
const mostCached = 1000

/** The reader of the values of a field. Null is for its caller. */
export const reader = (
  field: Schema.Codec<unknown, unknown>,
  type: ColumnType,
  timeZone: DateTime.TimeZone.Named | undefined
): Read => {
  const times = timeZone && { timeZone, offsetOf: offsetsOf(timeZone) }
  const isTime = type === "timestamptz"
  // The schema's own form of a time is wider: text that `Date` accepts, in the zone of this process.
  const schema = isTime ? Schema.String : field
  const [accepts, decode] = [Schema.is(schema), Schema.decodeUnknownResult(schema)]

  const read: Read = (given, isText) => {
    const value = isText && Predicate.isString(given) ? converted(given, type) : given
    const unfit = (reason: string) => ({
      reason: `${reason}: ${cut(Predicate.isString(given) ? given : JSON.stringify(given))}`
    })
    if (!accepts(value)) {
      const decoded = decode(value)
      const issues = Result.isFailure(decoded) ? issuesOf(decoded.failure.issue).issues : []
      return unfit(cut(issues.map(({ message }) => message.replace(" | null", "")).join("; ")))
    }
    // A number of a CSV is passed on with its digits as they are.
    const text = isText && type === "numeric" ? String(given) : String(value)
    if (isTime) {
      const time = timeOf(text, times)
      return Predicate.isString(time) ? time : unfit(time.reason)
    }
    const fault = faultOf(value, text, type)
    if (fault !== undefined) return unfit(fault)
    return type === "numeric" ? text : fieldOf(value, type)
  }

  const cache = new Map<unknown, string>()
  return (given, isText) => {
    const cached = cache.get(given)
    if (cached !== undefined) return cached
    const result = read(given, isText)
    if (cache.size < mostCached && Predicate.isString(result)) cache.set(given, result)
    return result
  }
}

/** True of a name in the IANA database, as the time zone of a clinic. */
export const isZone = (text: string) => !/^[+-]/.test(text) && Option.isSome(DateTime.zoneMakeNamed(text))
