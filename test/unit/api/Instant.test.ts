/** Points in time as requests name them. */
import { assert, it } from "@effect/vitest"
import { Result } from "effect"
import * as Instant from "../../../src/api/records/Instant.ts"

const refused: Readonly<Record<string, ReadonlyArray<string>>> = {
  "input is too short": ["", "now", "2026-01", "20260131", "2026-1-31"],
  "input is not an ISO 8601 date and time": [
    " 2026-01-31T09:30:00Z",
    "2026-01-31T09:30:00Z\n",
    "1769852400000",
    "2026-01-31T09:30:00,5Z",
    "2026-01-31t09:30:00z",
    "2026-01-31T09:30:00+2:00",
    "٢٠٢٦-٠١-٣١T09:30:00Z"
  ],
  "year 0 is out of range": ["0000-01-01", "0000-12-31T23:59:59-23:59"],
  "month value is outside expected range of 1-12": ["2026-00-01", "2026-13-01", "2026-99-99T99:99:99Z"],
  "day value is outside expected range": ["2026-01-00", "2026-01-32", "2026-02-29", "2026-04-31", "1900-02-29"],
  "hour value is outside expected range of 0-23": ["2026-01-31T24:00:00Z", "2026-01-31T99:00Z"],
  "minute value is outside expected range of 0-59": ["2026-01-31T09:60:00Z"],
  "second value is outside expected range of 0-59": ["2026-01-31T09:30:60Z", "2016-12-31T23:59:60Z"],
  "timezone offset must be less than 24 hours": ["2026-01-31T09:30:00+24:00", "2026-01-31T09:30:00+00:60"]
}

/** Texts, the second that each names in UTC, and the microseconds beyond. */
it.for<readonly [text: string, second: string, beyond?: number]>([
  ["2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"],
  ["2026-01-31 09:30:00Z", "2026-01-31T09:30:00Z"],
  ["2026-01-31T09:30:00", "2026-01-31T09:30:00Z"],
  ["2026-01-31T09:30", "2026-01-31T09:30:00Z"],
  ["2026-01-31", "2026-01-31T00:00:00Z"],
  ["2026-01-31T09:30:00+0530", "2026-01-31T04:00:00Z"],
  ["2026-01-31T09:30:00-05", "2026-01-31T14:30:00Z"],
  ["2026-01-31T09:30:00-09:45", "2026-01-31T19:15:00Z"],
  ["2026-01-31T09:30:00.123456Z", "2026-01-31T09:30:00Z", 123_456],
  ["2026-01-31T09:30:00.5Z", "2026-01-31T09:30:00Z", 500_000],
  ["2026-01-31T09:30:00.00000000000000000001Z", "2026-01-31T09:30:00Z", 1],
  ["1969-12-31T23:59:59.9999991Z", "1970-01-01T00:00:00Z"],
  ["1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59Z", 999_999],
  ["2000-02-29", "2000-02-29T00:00:00Z"],
  ["0099-01-01", "0099-01-01T00:00:00Z"],
  ["0001-01-01T00:00:00+23:59", "0000-12-31T00:01:00Z"],
  ["9999-12-31T23:59:59.9999999-23:59", "+010000-01-01T23:59:00Z"]
])("a time %s is read, in UTC without an offset, and a date alone as its midnight", ([text, second, beyond = 0]) => {
  const micros = BigInt(Date.parse(second)) * 1000n + BigInt(beyond)
  assert.deepStrictEqual(Instant.parse(text), Result.succeed(micros))
})

it.each(Object.entries(refused).flatMap(([reason, texts]) => texts.map((text) => [text, reason] as const)))(
  "the instant %j is refused: %s",
  (text, reason) => {
    assert.deepStrictEqual(Instant.parse(text), Result.fail(reason))
  }
)
