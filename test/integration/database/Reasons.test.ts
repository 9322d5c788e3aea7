/** The reason of a database failure, in logs: a code and names, and no data. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { safeReason } from "../../../src/database/SqlFailure.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"
import { live } from "../../support/tries.ts"

const secret = "s3cret"

const raises = (code: string) =>
  `do $$ begin raise exception 'The row of %', '${secret}' using errcode = '${code}', detail = '${secret}'; end $$`

const refusals = [
  ["an exception of a trigger or function", raises("P0001"), "UnknownError P0001"],
  ["a value that is none", `select '${secret}'::integer`, "UnknownError 22P02"],
  [
    "a row that is there",
    `insert into kept values ('${secret}', 1)`,
    "UniqueViolation 23505, constraint kept_pkey, table kept"
  ],
  ["a missing value", `insert into kept values ('${secret}_')`, "ConstraintError 23502, table kept, column size"],
  [
    "a privilege that is lacking, and its object",
    "do $$ begin set local role pg_monitor; perform from pets; end $$",
    "AuthorizationError 42501, permission denied for table pets"
  ],
  ["an exception of a trigger that lacks a privilege", raises("42501"), "AuthorizationError 42501"],
  ["a read that a replica ends", raises("40001"), "SerializationError 40001"],
  ["a parameter that cannot be sent", "select $1", "UnknownError", Symbol(secret)]
] as const

layer(TestDatabase.layer, live)("of a failure is said", (it) => {
  it.effect.each(refusals)("the code and what it is about: %s", ([, statement, reason, ...values]) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`create table if not exists kept (id text primary key, size integer not null)`
      yield* sql`insert into kept values (${secret}, 1) on conflict do nothing`
      assert.strictEqual(safeReason(yield* Effect.flip(sql.unsafe(statement, values))), reason)
    })
  )

  it.effect("the system's code of a connection that is refused, and not whose it is", () =>
    Effect.gen(function* () {
      const sql = yield* clientOf(`postgres://${secret}:${secret}@127.0.0.1:1/${secret}`)
      assert.strictEqual(safeReason(yield* Effect.flip(sql`select 1`)), "ConnectionError ECONNREFUSED")
    })
  )
})
