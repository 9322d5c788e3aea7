/** What writers and other triggers cannot keep from being told. */
import { assert, layer } from "@effect/vitest"
import { Effect, Schedule } from "effect"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Pages from "../../../src/records/Pages.ts"

const organization = "org_triggers"

layer(TestDatabase.layer, { excludeTestServices: true })("a change is told", (it) => {
  /** The changes after a cursor, as soon as no transaction of another test holds them back. */
  const changes = Effect.fnUntraced(function* (cursor?: string) {
    const { sql } = yield* TestDatabase
    return yield* Postgres.make(sql, pets)
      .changes({ cursor, limit: 1000 })
      .pipe(
        Effect.provideService(CurrentOrganization, CurrentOrganization.known(organization)),
        Effect.repeat({ until: ({ lag }) => lag === 0, schedule: Schedule.spaced("20 millis") })
      )
  })

  it.effect.each(["a_touch", "set_updated_at", "touch", "zz"])("that only another trigger makes, called %s", (name) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`insert into pets (organization_id, id, breed) values (${organization}, ${name}, 'before')`
      const { cursor } = yield* changes()
      yield* sql.unsafe(`create or replace function touched() returns trigger language plpgsql as $$
        begin new.breed := 'after'; return new; end $$`)
      yield* sql.unsafe(`create trigger ${name} before update on pets for each row execute function touched()`)
      yield* sql`update pets set name = name where id = ${name}`
      yield* sql.unsafe(`drop trigger ${name} on pets`)
      assert.match(Pages.toText((yield* changes(cursor)).json), /"breed":"after"/)
    })
  )

  it.effect("whatever position the writer gives, and whatever its session's settings are", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { cursor } = yield* changes()
      yield* sql.withTransaction(
        Effect.gen(function* () {
          yield* sql`set local session_replication_role = replica`
          yield* sql`set local search_path = ''`
          yield* sql`set local synchronous_commit = off`
          yield* sql`insert into public.pets (organization_id, id, change_position) values (${organization}, 'given', 1)`
          yield* sql`update public.pets set name = 'given', change_position = 1 where id = 'given'`
          const [setting] = yield* sql`select current_setting('synchronous_commit') as value`
          assert.deepStrictEqual(setting, { value: "on" })
        })
      )
      assert.match(Pages.toText((yield* changes(cursor)).json), /"id":"given","name":"given"/)
    })
  )
})
