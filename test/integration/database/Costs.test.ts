/**
 * The cost of reads. A search reads little of a table, whichever filter it has and however many records the organization has,
 * and a simple one is planned once. A page of changes reads about the changes that it tells, however deep the cursor is.
 */
import { assert, layer } from "@effect/vitest"
import { DateTime, Effect, Formatter } from "effect"
import { charges } from "../../../src/api/records/Charges.ts"
import { consumptionLogs, invoices } from "../../../src/api/records/Invoices.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import { resources as all, searchable } from "../../../src/api/records/index.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { inOrder, RecordDatabase } from "../../../src/database/Database.ts"
import { keyedText, type Query } from "../../../src/keys/OrganizationReads.ts"
import { type Kind, ofAll, ofResource } from "../../../src/records/Pages.ts"
import { makeChangesQuery, rangesText, wokenQuery } from "../../../src/records/FeedQuery.ts"
import * as Records from "../../../src/records/Repository.ts"
import { keepingTimes } from "../../../src/records/Rows.ts"
import { searchQuery } from "../../../src/records/SearchQuery.ts"
import * as Walk from "../../../src/records/Walk.ts"
import { clockOf } from "../../support/Follower.ts"
import { insertKey, keyHashOf } from "../../support/keys.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { filters, meaningOf } from "../records/expected.ts"
import { asHolderOfKey, asKnown } from "../records/stores.ts"
import { blocksOf, explain, nodesOf, rowsOf, scansOf } from "./plans.ts"

/** The organization whose rows `fill` writes. */
const organization = "org_large"

/** The hash of an organization's key. */
const keyOf = (owner: string) => Effect.as(insertKey(owner, owner), keyHashOf(owner))

/** The statement of a query for an organization, and for its key. */
const waysOf = <Row>(query: Query<Row>, owner: string, keyHash: Uint8Array) =>
  [
    [query.text, [owner, ...query.values]],
    [keyedText(query), [keyHash, ...query.values]]
  ] as const

/**
 * The reads of a page of a search: rows of the table, blocks of it and its indexes, and the kinds of scan. They are the same
 * whether the organization is known or looked up by its key.
 */
const costOf = Effect.fnUntraced(function* (
  resource: Resource,
  criteria: Records.Criteria,
  owner = organization,
  page: Records.Page = { limit: 100, offset: 0 }
) {
  const keyHash = yield* keyOf(owner)
  const query = searchQuery(resource, criteria, page)
  const plans = yield* Effect.forEach(waysOf(query, owner, keyHash), ([text, values]) =>
    explain(text, values, query.isPlannedOnce)
  )
  const scans = plans.map((plan) => nodesOf(plan).filter((node) => node["Relation Name"] === resource.table))
  return {
    rows: Math.max(...scans.map(rowsOf)),
    blocks: Math.max(...scans.map(blocksOf)),
    scans: scans.flat().map((node) => node["Node Type"])
  }
})

/**
 * The reads of a page of changes: rows of all tables, and the kinds of scan, for any walk and for this one, where
 * the organization is known and where it is looked up by its key.
 */
const changesCostOf = Effect.fnUntraced(function* (kind: Kind, walk: Walk.Walk, limit: number, owner = organization) {
  const keyHash = yield* keyOf(owner)
  const query = makeChangesQuery(kind, false)(limit, [String(limit + 1), rangesText(kind, [walk])])
  const plans = yield* Effect.forEach(waysOf(query, owner, keyHash), ([text, values]) =>
    Effect.all([explain(text, values, true), explain(text, values, false)])
  )
  return plans.flat().map((plan) => {
    const scans = scansOf(plan)
    return {
      rows: rowsOf(scans),
      blocks: blocksOf(scans),
      told: rowsOf(nodesOf(plan).slice(0, 1)),
      scans: scans.map((node) => `${node["Node Type"]} ${node["Relation Name"]}`)
    }
  })
})

const clock = "timestamptz '2026-01-01 00:00:00+00' + n * interval '1 second'"

/**
 * Makes a table hold rows numbered by n, one second apart in the order of writing. Ten rows share each text and each
 * number that a filter looks at; of every hundred, one is deleted.
 *
 * @param given the SQL of some columns, by name
 */
const fill = Effect.fnUntraced(function* (
  resource: Resource,
  rows: number,
  given: Readonly<Record<string, string>> = {}
) {
  const { sql } = yield* TestDatabase
  const filtered = Object.fromEntries(
    Object.keys(filters[resource.name] ?? {}).flatMap((filter) => {
      const { sign, columns } = meaningOf(resource.name, filter)
      const group = `n % ${rows / 10}`
      const value = sign === "-" ? "n % 100 = 0" : sign === "#" ? group : `'${filter}_' || ${group}`
      return columns.map((column) => [column, value] as const)
    })
  )
  const values = {
    ...filtered,
    organization_id: `'${organization}'`,
    created_at: clock,
    [resource.orderedBy]: clock,
    id: "'id_' || n",
    ...given
  }
  const insert = `insert into ${resource.table} (${Object.keys(values).join(", ")})
    select ${Object.values(values).join(", ")} from generate_series(1, ${rows}) n`
  yield* sql.unsafe(`truncate ${resource.table}`)
  yield* keepingTimes(sql, sql.unsafe(insert))
  yield* sql.unsafe(`vacuum analyze ${resource.table}`)
})

/** The first page reads about the rows that it shows, and never looks for them through the table. */
const checkCost = Effect.fnUntraced(function* (
  resource: Resource,
  criteria: Records.Criteria,
  found: { readonly rows: number; readonly blocks: number },
  owner?: string
) {
  const cost = yield* costOf(resource, criteria, owner)
  const message = `${resource.name} ${Formatter.format(criteria)} costs ${Formatter.format(cost)}`
  assert.isAtMost(cost.rows, found.rows, message)
  assert.isAtMost(cost.blocks, found.blocks, message)
  assert.notInclude(cost.scans, "Seq Scan", message)
})

// The first statement of a session reads up to 15 blocks of the catalogs as well.
const nothing = { rows: 0, blocks: 20 }
// Few records are found by an index of one column, once for each way in which a search can find them.
const few = { rows: 25, blocks: 40 }
const page = { rows: 110, blocks: 150 }

/** The time of the record with a number. */
const timeOf = (n: number) => DateTime.formatIso(DateTime.makeUnsafe(Date.UTC(2026, 0, 1) + n * 1000))

/** Values of a filter, and how much the first page of each may read. */
const questionsOf = (
  resource: string,
  filter: string,
  rows: number
): ReadonlyArray<readonly [string | boolean, typeof page]> => {
  switch (meaningOf(resource, filter).sign) {
    case "=":
      return [
        ["nowhere", nothing],
        [filter === "id" ? "id_77" : `${filter}_77`, few]
      ]
    case "#":
      return [
        ["987654321", nothing],
        ["no number", nothing],
        ["77", few]
      ]
    case ">=":
      return [
        ["2030-01-01", nothing],
        [timeOf(rows - 10), few],
        [timeOf(rows * 0.45), page],
        ["2020-01-01", page]
      ]
    case "<":
      return [
        ["2020-01-01", nothing],
        [timeOf(10), few],
        [timeOf(rows * 0.45), page],
        ["2030-01-01", page]
      ]
    default:
      return [
        [true, page],
        [false, page]
      ]
  }
}

const resources: ReadonlyArray<Resource> = all
const only = (...names: ReadonlyArray<string>) => resources.filter(({ name }) => names.includes(name))

/** The number of records of a table. */
const sizeOf = ({ name }: Resource) => (name === "charges" ? 6000 : 2000)

layer(TestDatabase.layerDatabases, { excludeTestServices: true })((it) => {
  const tables = resources.map(({ table }) => table)

  it.effect("every index orders text by its bytes, and leads with the organization, but for that of key hashes", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const others = yield* sql`
        select i.indexrelid::regclass::text as name
        from pg_index i join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
        where i.indrelid = any (${[...tables, "api_keys"]}::regclass[]) and a.attname <> 'organization_id'`
      assert.deepStrictEqual(others, [{ name: "api_keys_key_hash_key" }])
      const collations = yield* sql`
        select distinct c.collname as name
        from pg_index i, unnest(i.indcollation::oid[]) as used(oid) join pg_collation c on c.oid = used.oid
        where i.indrelid = any (${tables}::regclass[])`
      assert.deepStrictEqual(collations, [{ name: "C" }])
    })
  )

  it.effect.each(searchable.map((resource: Resource) => [resource.name, resource] as const))(
    "%s: a search reads little more than it finds, by any filter and by none",
    ([, resource]) =>
      Effect.gen(function* () {
        const rows = sizeOf(resource)
        yield* fill(resource, rows)
        yield* checkCost(resource, {}, page)
        yield* checkCost(resource, {}, nothing, "org_without_records")
        const questions = Object.keys(filters[resource.name] ?? {}).flatMap((filter) =>
          questionsOf(resource.name, filter, rows).map(([value, found]) => [{ [filter]: value }, found] as const)
        )
        yield* Effect.forEach(questions, ([criteria, found]) => checkCost(resource, criteria, found), {
          concurrency: 4
        })
      })
  )

  it.effect("a deep page skips in the index, and reads the rows that it shows", () =>
    Effect.gen(function* () {
      // In a small table, it is found as fast in other ways.
      const rows = sizeOf(charges)
      yield* fill(charges, rows)
      const cost = yield* costOf(charges, {}, undefined, { limit: 100, offset: rows * 0.75 })
      assert.isAtMost(cost.rows, rows * 0.75 + 300)
      assert.isAtMost(cost.blocks, rows * 0.06)
      assert.include(cost.scans, "Index Only Scan")
      assert.notInclude(cost.scans, "Seq Scan")
    })
  )

  it.effect("the first page of a large organization is short where others are small", () =>
    Effect.gen(function* () {
      yield* fill(charges, 2000, { organization_id: "case when n % 2 = 0 then 'org_large' else 'org_' || n end" })
      yield* checkCost(charges, {}, page)
      yield* checkCost(charges, {}, { rows: 1, blocks: 10 }, "org_77")
    })
  )

  it.effect("the first page of a frequent value is short where all others are rare", () =>
    Effect.gen(function* () {
      const texts = Object.keys(filters[charges.name] ?? {}).filter(
        (filter) => filter !== "id" && meaningOf(charges.name, filter).sign === "="
      )
      const columns = texts.flatMap((filter) => meaningOf(charges.name, filter).columns)
      const value = "case when n % 2 = 0 then 'frequent' else 'value_' || n / 6 end"
      yield* fill(charges, 2000, Object.fromEntries(columns.map((column) => [column, value])))
      for (const filter of texts) {
        yield* checkCost(charges, { [filter]: "frequent" }, page)
        yield* checkCost(charges, { [filter]: "value_77" }, few)
      }
    })
  )

  it.effect.each(only("charges", "invoices"))(
    "$name: the first page is short of a clinic whose clients are its own",
    (resource) =>
      Effect.gen(function* () {
        yield* fill(resource, 2000, { home_clinic: "'clinic_' || n % 2", servicing_clinic: "'clinic_' || n % 2" })
        yield* checkCost(resource, { clinic: "clinic_1" }, page)
      })
  )

  it.effect.each(only("pet-benefits", "consumption-logs", "invoices", "invoice-lines"))(
    "$name: the first page is short where nearly all records are deleted",
    (resource) =>
      Effect.gen(function* () {
        const [marker = ""] = meaningOf(resource.name, "include_deleted").columns
        yield* fill(resource, 2000, { [marker]: "n % 1000 <> 0" })
        for (const criteria of [{}, { updated_at_since: "2026-01-01" }, { created_at_since: "2026-01-01" }])
          yield* checkCost(resource, criteria, few)
      })
  )
})

const simple: ReadonlyArray<readonly [name: string, criteria: Records.Criteria]> = [
  ["a page", {}],
  ["a poll that finds nothing new", { updated_at_since: "2030-01-01" }],
  ["a filter that matches much", { home_clinic: "home_clinic_7" }]
]

layer(TestDatabase.layer, { excludeTestServices: true })((it) => {
  it.effect("a simple search is planned for no values in particular", () =>
    Effect.gen(function* () {
      yield* fill(consumptionLogs, 5000)
      yield* insertKey(organization, organization)
      for (const [name, criteria] of simple) {
        const pool = { settings: inOrder, maxConnections: 2, sharedConnections: 1 }
        const sql = yield* clientOf((yield* TestDatabase).url, pool)
        yield* sql.distribution.refresh
        const search = Records.make(sql, consumptionLogs, Records.still).search(criteria, { limit: 100, offset: 0 })
        for (const as of [asKnown, asHolderOfKey]) {
          for (let times = 0; times < 12; times++)
            yield* as(organization)(search).pipe(Effect.provideService(RecordDatabase, sql))
        }
        // Of the shared connection.
        const plans = yield* sql.short([
          `select custom_plans::int as made, generic_plans::int as reused from pg_prepared_statements
           where statement like '%from consumption' || '_logs%'`,
          []
        ])
        const each = { made: 5, reused: 7 }
        assert.deepStrictEqual(plans, [each, each], name)
      }
    })
  )
})

const names = searchable.map(({ name }) => name)

const feedsOf = (read: ReadonlyArray<string>) => Object.fromEntries(read.map((name) => [name, ""]))

layer(TestDatabase.layer, { excludeTestServices: true })((it) => {
  it.effect("a page of changes is planned once, whatever its limit", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf((yield* TestDatabase).url, { settings: inOrder, maxConnections: 1 })
      yield* sql`select change_mark()`
      const { changes } = Records.make(sql, pets, yield* clockOf(sql))
      for (let limit = 1; limit <= 12; limit++) yield* asKnown(organization)(changes({ limit }))
      const plans = yield* sql`
        select generic_plans > 0 as "isReused" from pg_prepared_statements where statement like '%json_to_recordset%'
        order by 1`.unprepared
      // The first statement also reads the state of the feed.
      assert.deepStrictEqual(plans, [{ isReused: false }, { isReused: true }])
    })
  )
})

const changed = 3000

/** Walks that have come to some changes, from the first to one after the last, with transactions that had not ended. */
const walks = Effect.fnUntraced(function* ({ table }: Resource) {
  const { sql } = yield* TestDatabase
  const found = yield* sql<{ position: number; id: string }>`
    select change_position::float8 as position, id from (
      select change_position, id, row_number() over (order by change_position, id) as n from (
        select change_position, id from ${sql.literal(table)} where organization_id = ${organization}
        union all
        select change_position, id from removals where organization_id = ${organization} and table_name = ${table}
      ) t
    ) t where n % 997 = 1 order by n`
  const feeds = feedsOf(names)
  const places = [...found, { position: 2 ** 50, id: "" }].map((place): Walk.Place => ({ ...place, branch: "~" }))
  return [
    Walk.opened(feeds),
    ...places.map((place): Walk.Walk => ({ feeds, place, running: [3, 5, 1000, place.position - 1] }))
  ]
})

const checkChanges = Effect.fnUntraced(function* (resource: Resource) {
  let told = 0
  for (const kind of [ofResource(resource), ofAll(searchable)]) {
    for (const walk of yield* walks(resource)) {
      for (const limit of [1, 1000]) {
        for (const cost of yield* changesCostOf(kind, walk, limit)) {
          const message = `${kind.name} ${limit} ${Formatter.format(walk)} costs ${Formatter.format(cost)}`
          // In each range, removals are read until there are enough, then sorted. Of one, also whether there is a record again. Each
          // resource has a first row of each range.
          assert.isAtMost(cost.rows, 4 * limit + 50 + 10 * kind.resources.length, message)
          assert.isFalse(cost.scans.includes(`Seq Scan ${resource.table}`), message)
          assert.isFalse(cost.scans.includes("Seq Scan removals"), message)
          told += cost.told
        }
      }
    }
  }
  assert.isAbove(told, changed)
})

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("a page of changes reads what it tells", (it) => {
  it.effect("of records that were written at once, and of some that were written since", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* fill(charges, changed)
      yield* sql`insert into charges (organization_id, id) select 'org_other', 'id_' || n from generate_series(1, 2000) n`
      for (let n = 0; n < 5; n++) yield* sql`update charges set pet = ${String(n)} where id like ${`id_${n + 1}7%`}`
      yield* checkChanges(charges)
    })
  )

  it.effect("where most of them are removals, some of records that exist again", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* fill(invoices, changed)
      yield* sql`delete from invoices where id not like '%5'`
      yield* sql`insert into invoices (organization_id, id) select organization_id, id from removals where id like '%3'`
      yield* sql`analyze removals`
      yield* checkChanges(invoices)
    })
  )

  it.effect("where there are many removals that it does not tell; and so do the clock and a new order", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const others: ReadonlyArray<string> = all.flatMap(({ name }) =>
        name === "invoices" || name === "charges" ? [] : [name]
      )
      const owner = "org_removed"
      const rowsRead = sql<{ rows: number }>`
        select sum(seq_tup_read + idx_tup_fetch)::int as rows from pg_stat_xact_user_tables where relname = 'removals'`
      const insert = (name: string) =>
        sql`insert into pets (organization_id, id) select ${owner}, ${name} || n from generate_series(1, 20) n`
      yield* insert("early_")
      const [begun] = yield* sql<{ at: number }>`select change_position()::float8 as at`
      const place: Walk.Place = { position: begun?.at ?? 0, id: "", branch: "" }
      yield* sql`
        insert into removals
        select ${owner}, case n % 2 when 0 then 'invoices' else 'charges' end, 'removed_' || n, change_position()
        from generate_series(1, 30000) n`
      yield* insert("late_")
      const loaded = 2 ** 50
      const cases: ReadonlyArray<readonly [string, Kind, Walk.Walk, number]> = [
        ["a first load", ofAll(searchable), Walk.opened(feedsOf(names)), 40],
        ["a load of one table", ofAll(searchable), Walk.opened(feedsOf(["pets"])), 40],
        ["a page within a load", ofAll(searchable), { ...Walk.opened(feedsOf(names)), place, floor: loaded }, 20],
        ["other resources", ofAll(searchable), { feeds: feedsOf(others), place, running: [place.position] }, 20],
        ["its own feed", ofResource(pets), { feeds: feedsOf(["pets"]), place, running: [] }, 20],
        [
          "nothing new",
          ofAll(searchable),
          { feeds: feedsOf(names), place: { ...place, position: loaded }, running: [] },
          0
        ],
        ["removals alone", ofAll(searchable), { feeds: feedsOf(["invoices"]), place, running: [] }, 1001]
      ]
      for (const [name, kind, walk, told] of cases) {
        for (const cost of yield* changesCostOf(kind, walk, 1000, owner)) {
          const message = `${name} costs ${Formatter.format(cost)}`
          // The first rows are of the key and the snapshot. Of a removal, it looks for a record.
          assert.include([told + 1, told + 2], cost.told, message)
          assert.isAtMost(cost.rows, told + 40, message)
          assert.isAtMost(cost.blocks, 3 * told + 300, message)
        }
      }
      const seen = { organization: owner, snapshot: { next: place.position, running: [] } }
      const tables = all.flatMap(({ name, table }) => (others.includes(name) && name !== "pets" ? [table] : []))
      const readers = [
        ...tables.map((table) => ({ ...seen, tables: [table] })),
        { ...seen, tables: ["pets", "charges"] }
      ]
      const woken = yield* explain(...wokenQuery(sql, readers, { next: loaded, running: [] }).compile(), false)
      assert.strictEqual(woken["Actual Rows"], 1)
      assert.isAtMost(rowsOf(scansOf(woken)), 10)
      const [started = 0, ended = Infinity] = yield* sql
        .withTransaction(
          Effect.all([
            rowsRead,
            sql`update change_feeds set place = 'elsewhere' where table_name = 'pets'`,
            sql`select change_begin()`,
            rowsRead
          ])
        )
        .pipe(Effect.map(([before, , , after]) => [before[0]?.rows ?? 0, after[0]?.rows ?? Infinity]))
      assert.isAtMost(ended - started, 20)
    })
  )
})
