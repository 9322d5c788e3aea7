/**
 * A point in time as requests name it: ISO 8601 date and time, kept to the microsecond.
 *
 * `T` or one space separates date and time; seconds and their fraction are optional; without an offset or `Z`
 * it is UTC; a date alone is its midnight. Digits alone, an epoch and an impossible date are refused.
 */
import { DateTime, Result } from "effect"

/** Microseconds since 1970-01-01T00:00:00Z. A finer fraction is rounded up, which keeps both `>=` and `<` exact. */
export type Instant = bigint

const shape =
  /^(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:\.(\d+))?)?(?:Z|([+-])(\d{2})(?::?(\d{2}))?)?)?$/

// Date.UTC reads the years 0 to 99 as 1900 to 1999; 400 years later the calendar is the same.
const utcMillis = (year: number, month: number, ...rest: ReadonlyArray<number>) => {
  const [day = 1, hour = 0, minute = 0, second = 0] = rest
  return Date.UTC(year + 400, month - 1, day, hour, minute, second) - 12_622_780_800_000
}

const daysIn = (year: number, month: number) => (utcMillis(year, month + 1) - utcMillis(year, month)) / 86_400_000

/** The instant of a text, or the reason why it is none. */
export const parse = (text: string): Result.Result<Instant, string> => {
  if (text.length < 10) return Result.fail("input is too short")
  const match = shape.exec(text)
  if (match === null) return Result.fail("input is not an ISO 8601 date and time")
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0] = match
    .slice(1, 7)
    .map((part) => Number(part ?? 0))
  const fraction = match[7] ?? ""
  const offsetHour = Number(match[9] ?? 0)
  const offsetMinute = Number(match[10] ?? 0)
  const parts = [
    [year, 1, 9999, "year 0 is out of range"],
    [month, 1, 12, "month value is outside expected range of 1-12"],
    [day, 1, daysIn(year, month), "day value is outside expected range"],
    [hour, 0, 23, "hour value is outside expected range of 0-23"],
    [minute, 0, 59, "minute value is outside expected range of 0-59"],
    [second, 0, 59, "second value is outside expected range of 0-59"],
    [offsetHour, 0, 23, "timezone offset must be less than 24 hours"],
    [offsetMinute, 0, 59, "timezone offset must be less than 24 hours"]
  ] as const
  const wrong = parts.find(([value, low, high]) => value < low || value > high)
  if (wrong !== undefined) return Result.fail(wrong[3])
  const offset = (match[8] === "-" ? -1 : 1) * (offsetHour * 60 + offsetMinute) * 60_000
  const finer = /[1-9]/.test(fraction.slice(6)) ? 1n : 0n
  const millis = BigInt(utcMillis(year, month, day, hour, minute, second) - offset)
  return Result.succeed(millis * 1000n + BigInt(fraction.slice(0, 6).padEnd(6, "0")) + finer)
}

export const fromMillis = (millis: number): Instant => BigInt(millis) * 1000n

const pad = (value: number | bigint, length: number) => String(value).padStart(length, "0")

/** The instant as Postgres reads a timestamptz, to the microsecond. */
export const toPostgres = (instant: Instant): string => {
  const micros = ((instant % 1_000_000n) + 1_000_000n) % 1_000_000n
  const utc = DateTime.toPartsUtc(DateTime.makeUnsafe(Number((instant - micros) / 1000n)))
  const day = `${pad(utc.year > 0 ? utc.year : 1 - utc.year, 4)}-${pad(utc.month, 2)}-${pad(utc.day, 2)}`
  const time = `${pad(utc.hour, 2)}:${pad(utc.minute, 2)}:${pad(utc.second, 2)}`
  return `${day} ${time}.${pad(micros, 6)}+00${utc.year > 0 ? "" : " BC"}`
}
