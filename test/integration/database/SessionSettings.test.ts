/**
 * The settings of sessions where a pooler keeps them from being asked for.
 *
 * @module-tag long
 */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import * as SessionSettings from "../../../src/database/SessionSettings.ts"
import { clientOf, newLogin, TestDatabase } from "../../support/TestDatabase.ts"

const asked = { TimeZone: "UTC", statement_timeout: "5000", enable_seqscan: "off", lock_timeout: "800" }

layer(TestDatabase.layerDatabases, { excludeTestServices: true })("The settings of sessions", (it) => {
  it.effect("are given to logins that are members of our roles, once, and leave what someone has set", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { name, url } = yield* newLogin("api")
      const [database] = yield* sql<{ name: string }>`select current_database() as name`
      yield* sql.unsafe(`alter role ${name} in database ${database?.name ?? ""} set enable_bitmapscan = 'on'`)
      // As a pooler has it: nothing is asked for.
      const lost = Effect.gen(function* () {
        const session = yield* clientOf(url)
        yield* session`reset statement_timeout`
        yield* session`set session timezone to default`
        const found = yield* SessionSettings.lost(session, asked)
        return { found, statements: yield* SessionSettings.statementsFor(session, found) }
      }).pipe(Effect.scoped)
      const before = yield* lost
      assert.include(SessionSettings.describe(before.found), "enable_seqscan is on instead of off")
      assert.include(
        before.statements,
        `alter role ${name} in database ${database?.name ?? ""} set enable_seqscan = 'off'`
      )
      assert.include((yield* SessionSettings.giveToLogins(sql)).given, name)
      assert.notInclude((yield* SessionSettings.giveToLogins(sql)).given, name)
      assert.notInclude(SessionSettings.describe((yield* lost).found), "enable_seqscan")
      const [kept] = yield* sql<{ config: string }>`
        select array_to_string(setconfig, ' ') as config from pg_db_role_setting
        where setrole = (select oid from pg_roles where rolname = ${name})`
      assert.include(kept?.config, "enable_bitmapscan=on")
      assert.include(kept?.config, "statement_timeout=60000")
    }).pipe(Effect.scoped)
  )
})
