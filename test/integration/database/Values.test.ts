/**
 * The JSON of the values that plain SQL stores: numbers by their shortest decimals, times in UTC and cut to milliseconds,
 * null where there is no value, every field. A value that JSON cannot show exactly is refused when it is written.
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import type { PgClient } from "@effect/sql-pg"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { charges } from "../../../src/api/records/Charges.ts"
import * as Instant from "../../../src/api/records/Instant.ts"
import * as OrganizationReads from "../../../src/database/OrganizationReads.ts"
import * as Records from "../../../src/records/Repository.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { integer } from "../../support/arbitraries.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { toText } from "../../../src/database/Columns.ts"

/** Writes a row in which these columns have these SQL expressions, times included, and reads what is shown of it. */
const shown = (sql: PgClient.PgClient, table: string, columns: Readonly<Record<string, string>>) => {
  const values = {
    organization_id: "'org_a'",
    id: "'1'",
    created_at: "now()",
    ...(table !== "clinics" && { updated_at: "now()" }),
    ...columns
  }
  const write = sql<{ record: string }>`
    insert into public.${sql(table)} (${sql.literal(Object.keys(values).join(", "))})
    values (${sql.literal(Object.values(values).join(", "))})
    returning record`
  return keepingTimes(sql, write).pipe(
    Effect.map(([row]) => row?.record ?? ""),
    Effect.ensuring(Effect.orDie(sql`truncate public.${sql(table)}`))
  )
}

/** Asserts the JSON of a field. Fields begin with a quote, and end before the next one or at the end of the record. */
const assertShows = (record: string, field: string, json: string) => {
  const shows = record.includes(`"${field}":${json},"`) || record.endsWith(`"${field}":${json}}`)
  assert.isTrue(shows, `${field}: ${json} in ${record}`)
}

const numbers = (
  "-0.00 1.50 100.000 -4.250 1000000000000000 1e20 999999999999999e6 0.0000010 0.00000099999 -0.0000001 1e-30 " +
  "0.123456789012345 0.000123456789012345 1.23456789012345e-16 -99999999999.9999 99999999999.99990000000000000000"
).split(" ")

/** Column, SQL, field, and what is shown. */
const values: ReadonlyArray<readonly [table: string, columns: Record<string, string>, field: string, json: string]> = [
  ...numbers.map((text) => ["charges", { net_paid: text }, "net_paid", String(Number(text) || 0)] as const),
  ["charges", { updated_at: "'1969-12-31 23:59:59.999999+00'" }, "updated_at", '"1969-12-31T23:59:59.999Z"'],
  ["charges", { updated_at: "'2026-01-31 09:30:00+05:30'" }, "updated_at", '"2026-01-31T04:00:00.000Z"'],
  ["charges", { updated_at: "'0001-01-01 00:00:00+00'" }, "updated_at", '"0001-01-01T00:00:00.000Z"'],
  ["charges", { updated_at: "'9999-12-31 23:59:59.999999+00'" }, "updated_at", '"9999-12-31T23:59:59.999Z"'],
  ["pets", { date_of_birth: "'2024-02-29'" }, "date_of_birth", '"2024-02-29"'],
  ["pets", { date_of_birth: "'0001-01-01'" }, "date_of_birth", '"0001-01-01"'],
  ["payment_intents", { payment_modifications: "'{}'" }, "payment_modifications", "null"],
  ["payment_intents", { payment_modifications: `'{"a,b",NULL_}'` }, "payment_modifications", '["a,b","NULL_"]'],
  ["cancellation_payment_intents", { refund_ids: "default" }, "refund_ids", "[]"],
  ["pet_benefits", { product_ids: "array['a\"', 'b,', E'\\\\', '{}']" }, "product_ids", '["a\\"","b,","\\\\","{}"]'],
  ["pet_benefits", { is_perk: "default" }, "is_perk", "false"],
  ["payment_intents", {}, "payment_split", '{"to_Platform":null,"to_Processor":null,"to_Clinic":null}']
]

/** Plan name, species and plan header, as SQL, and what they make. */
const planNames = [
  ["'Gold'", "'Canine'", "'Wellness'", '"Gold Canine Wellness"'],
  ["''", "'Canine'", "' '", '"Canine"'],
  ["E'\\t'", "E'\\n'", "'Wellness'", '"Wellness"'],
  ["'Gold'", "E'\\f\\u00a0'", "E'\\x0b'", '"Gold"'],
  ["'\"Gold\"'", "E'\\\\'", "null", '"\\"Gold\\" \\\\"'],
  ["null", "null", "null", "null"]
] as const

const composed = ["payment_intents", "cancellation_payment_intents"].flatMap((table) =>
  planNames.map(
    ([plan_name, species, plan_header, json]) =>
      [table, { plan_name, species, plan_header }, "wellnes_plan_name", json] as const
  )
)

/** Table, column, SQL, and what the refusal names. */
const refused: ReadonlyArray<readonly [table: string, column: string, value: string, names: RegExp]> = [
  ...["1234567890123456", "99999999999.99999", "0.1234567890123456", "'NaN'", "'-Infinity'", "-1e21", "1e-31"].map(
    (value) => ["charges", "net_paid", value, /"net_paid_at_most_15_digits"/] as const
  ),
  ...["'infinity'", "'-infinity'", "'0001-01-01 00:00:00+00 BC'", "'0001-01-01 00:00:00+00:01'"].flatMap((value) => [
    ["charges", "updated_at", value, /"updated_at_in_years_1_to_9999"/] as const,
    ["payment_plans", "next_payment_date", value, /"next_payment_date_in_years_1_to_9999"/] as const
  ]),
  ["charges", "created_at", "'10000-01-01 00:00:00+00'", /"created_at_in_years_1_to_9999"/],
  ["charges", "created_at", "null", /created_at.*not-null|not-null.*created_at/],
  ["pets", "date_of_birth", "'infinity'", /"date_of_birth_in_years_1_to_9999"/],
  ["pets", "date_of_birth", "'0044-03-15 BC'", /"date_of_birth_in_years_1_to_9999"/],
  ["pets", "date_of_birth", "'10000-01-01'", /"date_of_birth_in_years_1_to_9999"/],
  ["pet_benefits", "is_perk", "null", /is_perk.*not-null/],
  ["pet_benefits", "product_ids", "null", /product_ids.*not-null/],
  ["pet_benefits", "product_ids", "array['a', null]", /"product_ids_flat_without_nulls"/],
  ["pet_benefits", "product_ids", "array[['a'], ['b']]", /"product_ids_flat_without_nulls"/],
  ["payment_intents", "payment_modifications", "array[null]::text[]", /"payment_modifications_flat_without_nulls"/],
  ["payment_intents", "attempt_number", "2147483648", /integer out of range/],
  ["organizations", "id", "'org_b'", /"id_of_the_organization"/],
  ...["''", "' '", "E'\\t\\u00a0'"].map((value) => ["charges", "id", value, /"id_not_blank"/] as const),
  ...["''", "' '", "'org_a '", "E'\\norg_a'", "E'\\u2003org_a'"].map(
    (value) => ["charges", "organization_id", value, /"organization_id_without_blanks_around"/] as const
  ),
  ["clinics", "time_zone", "'Mars/Base'", /"time_zone_known"/]
]

/** Settings of a session, a login or a database, each of which changes how Postgres reads or writes something. */
const settings = {
  standard_conforming_strings: "off",
  DateStyle: "German, DMY",
  IntervalStyle: "sql_standard",
  TimeZone: "Pacific/Apia",
  extra_float_digits: "-15",
  array_nulls: "off",
  transform_null_equals: "on",
  quote_all_identifiers: "on",
  search_path: "pg_temp",
  default_transaction_isolation: "serializable",
  "plpgsql.variable_conflict": "use_column",
  session_replication_role: "replica"
}

// The years 1 to 9999, and a day around them, which offsets reach.
const [first, last] = [-62_135_683_200_000, 253_402_387_199_999]

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  it.effect.each([...values, ...composed])("%s shows %j as %s: exactly %s", ([table, columns, field, json]) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      assertShows(yield* shown(sql, table, columns), field, json)
    })
  )

  it.effect.each(refused)("%s refuses %s = %s", ([table, column, value, names]) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const error = yield* Effect.flip(shown(sql, table, { [column]: value }))
      assert.match(String(error.reason.cause), names)
    })
  )

  it.effect("rows show the same, whatever the session of their writer has set", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf((yield* TestDatabase).url, { settings })
      for (const [table, columns, field, json] of [...values, ...composed])
        assertShows(yield* shown(sql, table, columns), field, json)
      for (const [table, column, value, names] of refused)
        assert.match(String((yield* Effect.flip(shown(sql, table, { [column]: value }))).reason.cause), names)
    })
  )

  it.effect("microseconds are not shown, while filters and the order look at what is stored", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`truncate charges`
      const times = sql`
        insert into charges (organization_id, id, created_at, updated_at) values
          ('org_a', 'c', '2026-01-31 09:30:00.000001+00', '2026-01-31 09:30:00.000001+00'),
          ('org_a', 'b', '2026-01-31 09:30:00.000500+00', '2026-01-31 09:30:00.000500+00'),
          ('org_a', 'a', '2026-01-31 09:30:00.000999+00', '2026-01-31 09:30:00.000999+00')`
      yield* keepingTimes(sql, times)
      const repository = Records.make(OrganizationReads.make(sql), charges)
      const search = (criteria: Records.FilterValues) =>
        Effect.map(repository.search(criteria, { limit: 100, offset: 0 }), toText)
      const shownTimes = (yield* search({})).match(/"updated_at":"[^"]*"/g)
      assert.deepStrictEqual([...new Set(shownTimes)], ['"updated_at":"2026-01-31T09:30:00.000Z"'])
      for (const field of ["updated_at_since", "created_at_since"]) {
        for (const [time, ids] of [
          ["", "cba"],
          [".000001", "cba"],
          [".0000011", "ba"],
          [".000501", "a"],
          [".0009990001", ""]
        ] as const) {
          const found = (yield* search({ [field]: `2026-01-31T09:30:00${time}Z` })).matchAll(/"id":"(\w)"/g)
          assert.strictEqual([...found].map(([, id]) => id).join(""), ids)
        }
      }
    }).pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: "org_a" })))
  )

  it.effect.prop(
    "Postgres reads any instant as the same point in time, to the microsecond",
    { millis: integer(first, last), beyond: integer(0, 999) },
    ({ millis, beyond }) =>
      Effect.gen(function* () {
        const { sql } = yield* TestDatabase
        const given = [millis, first, last, -1, 0].map((time) => Instant.fromMillis(time) + BigInt(beyond))
        const [row] = yield* sql<{ micros: ReadonlyArray<string> }>`
          select array_agg((extract(epoch from t) * 1000000)::bigint::text order by n) as micros
          from unnest(${given.map(Instant.toPostgres)}::timestamptz[]) with ordinality as given(t, n)`
        assert.deepStrictEqual(row?.micros.map(BigInt), given)
      })
  )
})
