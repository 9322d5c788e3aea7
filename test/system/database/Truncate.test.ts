/**
 * The feeds of changes where a table is emptied at once, or filled at once.
 *
 * @module-tag long
 */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { clinics } from "../../../src/api/records/Clinics.ts"
import * as Cluster from "../../support/Cluster.ts"
import * as Follower from "../../support/Follower.ts"

const insert = (from: number, to: number) =>
  `insert into pets (organization_id, id, name)
    select '${Follower.organization}', 'pet_' || n, 'name ' || n from generate_series(${from}, ${to}) n`

/** A cluster with pets and a clinic, and readers that have read them. */
const opened = Effect.gen(function* () {
  const cluster = yield* Cluster.make()
  const { sql } = cluster
  yield* sql.unsafe(insert(1, 100))
  yield* sql`insert into clinics (organization_id, id) values (${Follower.organization}, 'clinic_1')`
  const service = yield* Follower.service(cluster)
  const reader = Follower.make()
  const other = Follower.make(clinics)
  yield* Follower.settled(reader, service)
  yield* Follower.settled(other, service)
  const check = Effect.fnUntraced(function* (gone: number) {
    yield* reader.drain(service, 30)
    yield* Follower.assertEqual(reader, sql)
    assert.strictEqual(reader.gone(), gone)
    yield* sql`insert into clinics (organization_id, id) values (${Follower.organization}, 'clinic_' || gen_random_uuid())`
    yield* other.drain(service)
    yield* Follower.assertEqual(other, sql)
    assert.strictEqual(other.gone(), 0)
  })
  return { cluster, sql, service, reader, check }
})

it.live("TRUNCATE that is rolled back, to a savepoint or as a whole, ends no cursor", () =>
  Effect.gen(function* () {
    const { check, sql } = yield* opened
    yield* Effect.ignore(sql.withTransaction(Effect.andThen(sql`truncate pets`, Effect.fail("back"))))
    yield* check(0)
    yield* sql.withTransaction(
      Effect.andThen(
        Effect.ignore(sql.withTransaction(Effect.andThen(sql`truncate pets`, Effect.fail("back")))),
        sql.unsafe(insert(200, 210))
      )
    )
    yield* check(0)
  })
)

it.live.each([
  ["", ""],
  ["frozen, ", " (freeze)"]
] as const)("TRUNCATE and COPY in one transaction, %sbeside a writer that began before", ([, option]) =>
  Effect.gen(function* () {
    const { check, cluster, reader, service, sql } = yield* opened
    const file = join(cluster.folder, "pets")
    yield* sql.unsafe(insert(5000, 5010))
    yield* sql.unsafe(`copy (select organization_id, id, 'copied' from pets where id like 'pet_5%') to '${file}'`)
    const session = yield* sql.reserve
    const run = (text: string) => session.executeUnprepared(text, [], undefined)
    yield* run("begin")
    yield* run(`insert into clinics (organization_id, id) values ('${Follower.organization}', 'clinic_late')`)
    yield* sql.withTransaction(
      Effect.andThen(sql`truncate pets`, sql.unsafe(`copy pets (organization_id, id, name) from '${file}'${option}`))
    )
    yield* sql.unsafe(insert(6000, 6003))
    const { lag } = yield* reader.drain(service, 3)
    assert.strictEqual(lag, 0)
    yield* run("commit")
    yield* check(1)
    assert.strictEqual(reader.copy().size, 26)
  }).pipe(Effect.scoped)
)
