/** Rules of all tables and functions of the schema. Each query finds what breaks one. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { resources } from "../../../src/api/records/index.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { live } from "../../support/tries.ts"

const tables = `any ('{${resources.map(({ table }) => table).join()}}'::regclass[])`

const rules = [
  [
    "each table has a primary key, so that a publication of all tables refuses no change",
    `select relname from pg_class c where relkind = 'r' and relnamespace = 'public'::regnamespace
       and not exists (select from pg_index where indrelid = c.oid and indisprimary)`
  ],
  [
    "each index of a table of records leads with the organization",
    `select i.indexrelid::regclass from pg_index i
       join pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[0]
     where i.indrelid = ${tables} and a.attname <> 'organization_id'`
  ],
  [
    "each index of a table of records orders text by bytes",
    `select i.indexrelid::regclass from pg_index i, unnest(i.indcollation::oid[]) as used(oid)
       join pg_collation c on c.oid = used.oid where i.indrelid = ${tables} and c.collname <> 'C'`
  ],
  [
    "each table of records refuses a blank id, and an organization with blanks around it",
    `select c.oid::regclass from pg_class c where c.oid = ${tables} and 2 <> (
       select count(*) from pg_constraint where conrelid = c.oid and convalidated
         and conname in ('id_not_blank', 'organization_id_without_blanks_around'))`
  ],
  [
    "a function finds its names whatever the search path is; only the owner calls a procedure",
    `select proname from pg_proc
     where pronamespace = current_schema()::regnamespace and case prokind
       when 'p' then has_function_privilege('public', oid, 'EXECUTE')
       else (prosecdef or prosqlbody is null) and not coalesce(proconfig, '{}') @> array['search_path=pg_catalog, pg_temp']
         -- Those of the worker fire triggers of others.
         and (prosecdef or proname not in ('deletion_settings', 'mark_invoices', 'mark_invoice_lines', 'finish_deletion', 'run_deletion'))
     end`
  ]
] as const

layer(TestDatabase.layer, live)("in the schema", (it) => {
  it.effect.each(rules)("%s", ([, query]) =>
    Effect.flatMap(TestDatabase, ({ sql }) =>
      Effect.map(sql.unsafe(query), (found) => assert.deepStrictEqual(found, []))
    )
  )
})
