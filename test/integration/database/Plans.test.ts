/** A simple search is planned once, not for each request: a plan costs Postgres more than the page. */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { inOrder } from "../../../src/database/Database.ts"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { consumptionLogs } from "../../../src/api/records/ConsumptionLogs.ts"
import { UnresolvedKey } from "../../../src/keys/OrganizationReads.ts"
import * as Records from "../../../src/records/Repository.ts"
import type { Criteria } from "../../../src/records/Repository.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { fill, organization } from "./cost.ts"

const simple: ReadonlyArray<readonly [name: string, criteria: Criteria]> = [
  ["a page", {}],
  ["a poll that finds nothing new", { updated_at_since: "2030-01-01" }],
  ["a filter that matches much", { home_clinic: "home_clinic_7" }]
]

const keyHash = hash("sha256", "key", "buffer")

/** By its id, or by its key. */
const organizations = [{ id: organization }, new UnresolvedKey(keyHash, () => Effect.never)]

layer(TestDatabase.layer, { excludeTestServices: true })("a search that is simple", (it) => {
  it.effect.each(simple)("is planned for no values in particular: %s", ([, criteria]) =>
    Effect.gen(function* () {
      const { sql: owner, url } = yield* TestDatabase
      yield* fill(consumptionLogs, 5000)
      const key = { organization_id: organization, id: "key", name: "Test", prefix: "test", key_hash: keyHash }
      yield* owner`insert into api_keys ${owner.insert(key)} on conflict do nothing`
      const sql = yield* clientOf(url, { settings: inOrder })
      const repository = Records.make(sql, consumptionLogs)
      const search = repository.search(criteria, { limit: 100, offset: 0 })
      for (const known of organizations) {
        for (let times = 0; times < 12; times++) {
          yield* Effect.provideService(search, CurrentOrganization, known)
        }
      }
      const plans = yield* sql<{ made: number; reused: number }>`
        select custom_plans::int as made, generic_plans::int as reused from pg_prepared_statements
        where statement like '%from consumption_logs%'`.unprepared
      assert.deepStrictEqual(plans, [
        { made: 5, reused: 7 },
        { made: 5, reused: 7 }
      ])
    })
  )
})
