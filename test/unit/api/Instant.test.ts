/** Points in time as requests name them. */
import { assert, describe, it } from "@effect/vitest"
import { DateTime, Result } from "effect"
import * as Instant from "../../../src/api/records/Instant.ts"
import { integer } from "../../support/arbitraries.ts"

const read = (text: string) => Result.getOrThrow(Instant.parse(text))

/** Texts, the second that each names in UTC, and the microseconds beyond. */
const accepted: ReadonlyArray<readonly [text: string, second: string, beyond?: number]> = [
  ["2026-01-31T09:30:00Z", "2026-01-31T09:30:00Z"],
  ["2026-01-31 09:30:00Z", "2026-01-31T09:30:00Z"],
  ["2026-01-31T09:30:00", "2026-01-31T09:30:00Z"],
  ["2026-01-31T09:30", "2026-01-31T09:30:00Z"],
  ["2026-01-31", "2026-01-31T00:00:00Z"],
  ["2026-01-31T09:30:00+0530", "2026-01-31T04:00:00Z"],
  ["2026-01-31T09:30:00-05", "2026-01-31T14:30:00Z"],
  ["2026-01-31T09:30:00.00000000000000000001Z", "2026-01-31T09:30:00Z", 1],
  ["1969-12-31T23:59:59.9999991Z", "1970-01-01T00:00:00Z"],
  ["1969-12-31T23:59:59.999999Z", "1969-12-31T23:59:59Z", 999_999],
  ["2000-02-29", "2000-02-29T00:00:00Z"],
  ["0099-01-01", "0099-01-01T00:00:00Z"],
  ["0001-01-01T00:00:00+23:59", "0000-12-31T00:01:00Z"],
  ["9999-12-31T23:59:59.9999999-23:59", "+010000-01-01T23:59:00Z"]
]

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

const pad = (value: number) => String(value).padStart(2, "0")

describe("an instant", () => {
  it.for(accepted)("%s is read", ([text, second, beyond = 0]) => {
    assert.strictEqual(read(text), BigInt(Date.parse(second)) * 1000n + BigInt(beyond))
  })

  it.each(Object.entries(refused).flatMap(([reason, texts]) => texts.map((text) => [text, reason] as const)))(
    "%j is refused: %s",
    (text, reason) => {
      assert.deepStrictEqual(Instant.parse(text), Result.fail(reason))
    }
  )

  it.prop(
    "the same point in time is the same, whatever the offset that it is named with",
    { time: integer(-62_000_000_000_000, 253_000_000_000_000), offset: integer(-1439, 1439) },
    ({ time, offset }) => {
      const local = DateTime.formatIso(DateTime.makeUnsafe(time + offset * 60_000)).slice(0, -1)
      const distance = Math.abs(offset)
      const sign = offset < 0 ? "-" : "+"
      const named = `${local}${sign}${pad(Math.floor(distance / 60))}:${pad(distance % 60)}`
      assert.strictEqual(read(named), BigInt(time) * 1000n)
    }
  )

  it.prop(
    "a fraction finer than a microsecond is rounded up, so that both bounds stay exact",
    { whole: integer(0, 999_999), finer: integer(0, 999_999) },
    ({ whole, finer }) => {
      const digits = `${String(whole).padStart(6, "0")}${String(finer).padStart(6, "0")}`
      const micros = read(`2026-01-31T09:30:00.${digits}Z`) - read("2026-01-31T09:30:00Z")
      assert.strictEqual(micros, BigInt(whole + (finer === 0 ? 0 : 1)))
    }
  )
})
