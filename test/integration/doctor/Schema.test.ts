/**
 * The finding of the doctor about each kind of object that a database lacks, and the statement that mends it.
 *
 * @module-tag long
 */
import { readFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { made } from "../../../scripts/doctor/made.ts"
import { script } from "../../../src/database/migrations/script.ts"
import { changes } from "../../../src/operations/doctor/DatabaseChecks.ts"
import * as MigrationsCheck from "../../../src/operations/doctor/MigrationsCheck.ts"
import { migrate } from "../../../src/database/Migrations.ts"
import { clientOf, emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { begun } from "./examined.ts"

const roles = ["data-api", "intake", "worker"] as const

const problems = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const said = [...(yield* MigrationsCheck.check(sql, roles)), ...(yield* changes(sql))]
  return said.filter(({ message, status }) => status !== "ok" && !message.includes("is a superuser"))
})

const isFine = Effect.map(problems, (found) => assert.deepStrictEqual(found, []))

/** Runs statements as psql does. Those with the body of a function, which has semicolons, all in one. */
const run = (text: string) =>
  Effect.flatMap(TestDatabase, ({ sql }) =>
    text.includes("$function$")
      ? Effect.provideService(script(text), SqlClient.SqlClient, sql)
      : Effect.forEach(text.split(/; (?=[a-z]+ )/i), (statement) => sql.unsafe(statement), { discard: true })
  )

/** The only finding, by what the statements break, and the statement that undoes it where the advice is none. */
const broken: Readonly<Record<string, readonly [statements: string, undo?: string]>> = {
  "The table audit_log is missing.": ["alter table audit_log rename to gone", "alter table gone rename to audit_log"],
  "The column deletion_tasks.trace_parent is missing.": [
    "alter table deletion_tasks rename trace_parent to gone",
    "alter table deletion_tasks rename gone to trace_parent"
  ],
  "The column intake_secrets.secret is not as the migrations make it.": [
    "alter table intake_secrets alter column secret type varchar(80)",
    "alter table intake_secrets alter column secret type text"
  ],
  "The column invoices.is_deleted is not as the migrations make it.": [
    "alter table invoices alter column is_deleted drop default",
    "alter table invoices alter column is_deleted set default false"
  ],
  "The column deletion_tasks.received_at is not as the migrations make it.": [
    "alter table deletion_tasks alter column received_at drop not null",
    "alter table deletion_tasks alter column received_at set not null"
  ],
  "The constraint organizations_own_id of organizations is missing.": [
    "alter table organizations drop constraint organizations_own_id"
  ],
  "The constraint organizations_own_id of organizations is not as the migrations make it.": [
    "alter table organizations drop constraint organizations_own_id, add constraint organizations_own_id check (id = organization_id) not valid"
  ],
  "The constraint api_date_fits of api_date is missing.": ["alter domain api_date drop constraint api_date_fits"],
  "The index pets_search is missing.": ["drop index pets_search"],
  "The index pets_search is not as the migrations make it.": [
    "update pg_index set indisvalid = false where indexrelid = 'pets_search'::regclass"
  ],
  "The index pets_created is not as the migrations make it.": [
    "drop index pets_created; create index pets_created on pets (created_at)"
  ],
  "The trigger removed of pets is missing.": ["drop trigger removed on pets"],
  "The trigger kept of removals is not as the migrations make it.": ["alter table removals enable trigger kept"],
  "The function public.change_mark() is missing.": ["drop function change_mark()"],
  "The function public.change_mark() is not as the migrations make it.": [
    "create or replace function change_mark() returns void language sql as ''"
  ],
  "The role practice_data_api lacks SELECT on pets.": ["revoke select on pets from practice_data_api"],
  "The role practice_data_intake lacks INSERT on deletion_tasks.": [
    "revoke insert (payload) on deletion_tasks from practice_data_intake"
  ],
  "The role practice_data_api lacks EXECUTE on function touch_api_key(bytea).": [
    "revoke execute on function touch_api_key from practice_data_api"
  ],
  "The role practice_data_worker may do more than it should: DELETE on pets.": [
    "grant delete on pets to practice_data_worker"
  ],
  "Every role may do more than it should: EXECUTE on function change_begin().": [
    "grant execute on function change_begin to public"
  ],
  "Every login may create objects in the schema public, such as functions that others call in error.": [
    "grant create on schema public to public"
  ]
}

layer(begun, { excludeTestServices: true })("The doctor names", (it) => {
  it.effect.each(Object.entries(broken))(
    "what is broken, and the statement that mends it: %s",
    ([message, [statements, undo]]) =>
      Effect.gen(function* () {
        yield* run(statements)
        const found = yield* problems
        assert.deepStrictEqual(
          found.map((each) => each.message),
          [message]
        )
        yield* run(undo ?? found[0]?.advice ?? "")
        yield* isFine
      })
  )

  it.effect("a disabled trigger of changes, whose order begins anew when it is mended", () =>
    Effect.gen(function* () {
      yield* run("alter table pets disable trigger removed")
      const [found, consequence, ...others] = yield* problems
      assert.strictEqual(found?.message, "The trigger removed of pets is not as the migrations make it.")
      assert.include(consequence?.message, "The order of changes of pets has to begin anew")
      assert.deepStrictEqual(others, [])
      yield* run(found?.advice ?? "")
      yield* isFine
    })
  )

  it.effect("each role that may not use the schema", () =>
    Effect.gen(function* () {
      yield* run("revoke usage on schema public from public")
      const found = yield* problems
      assert.deepStrictEqual(
        found.map((each) => each.message),
        ["api", "intake", "worker"].map((role) => `The role practice_data_${role} lacks USAGE on schema public.`)
      )
      for (const { advice = "" } of found) yield* run(advice)
      yield* isFine
      yield* run("grant usage on schema public to public")
    })
  )

  it.effect("nothing of the operator's own, nor of what the service changes itself", () =>
    Effect.gen(function* () {
      yield* Effect.forEach(
        [
          "create or replace function change_base() returns bigint language sql stable parallel safe return 7000",
          "create index own on pets (breed)",
          "alter table pets add column own text default 'mine' not null",
          "create function own() returns trigger language plpgsql as 'begin return new; end'",
          "create trigger own before update on pets for each row execute function own()",
          "create table own_records (id text primary key)",
          "grant select on intake_secrets to practice_data_worker"
        ],
        run,
        { discard: true }
      )
      yield* isFine
    })
  )
})

layer(TestDatabase.layer, { excludeTestServices: true })("What the doctor knows of a database", (it) => {
  it.effect("is what the migrations make: `npm run generate` writes it", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const text = yield* made(sql)
      assert.strictEqual(
        readFileSync(new URL("../../../src/operations/doctor/migrated.json", import.meta.url), "utf8"),
        text
      )
    })
  )

  it.effect("is true in another schema as well", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf(yield* emptyDatabase, { settings: { search_path: "practice" } })
      yield* sql`create schema practice`
      yield* migrate(sql)
      const problemsThere = Effect.map(MigrationsCheck.check(sql, roles), (said) =>
        said.filter(({ status }) => status === "fail")
      )
      const lacking = yield* problemsThere
      assert.isTrue(lacking.every(({ message }) => message.endsWith("lacks USAGE on schema practice.")))
      for (const { advice = "" } of lacking) yield* sql.unsafe(advice)
      yield* sql`drop index pets_search`
      const [index, ...others] = yield* problemsThere
      assert.deepStrictEqual(others, [])
      yield* sql.unsafe(index?.advice ?? "")
      assert.deepStrictEqual(yield* problemsThere, [])
    })
  )
})
