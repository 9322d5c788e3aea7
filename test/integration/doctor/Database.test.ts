/**
 * The findings of the doctor about a database in which something is wrong, and about replicas; the one about each kind of
 * object that a database lacks, and the statement that mends it.
 */
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import { inOrder, lockTimeout } from "../../../src/database/Database.ts"
import * as Migrations from "../../../src/database/Migrations.ts"
import { changes, sessionSettingsLost } from "../../../src/operations/doctor/DatabaseChecks.ts"
import * as MigrationsCheck from "../../../src/operations/doctor/MigrationsCheck.ts"
import { clientOf, emptyDatabase, newLogin, TestDatabase } from "../../support/TestDatabase.ts"
import { begun, during, examined, has, inheriting, isFine, mend, messagesOf, run } from "./examined.ts"
import { eventually } from "../../support/eventually.ts"
import { long } from "../../support/tries.ts"
import * as Cluster from "../../support/Cluster.ts"

const of = (url: string, environment: Readonly<Record<string, string>> = {}, area = "DATABASE_URL") =>
  Effect.map(examined({ DATABASE_URL: url, ...environment }), (findings) =>
    findings.filter((finding) => finding.area === area)
  )

const task = (id: string, state: string, due: string) => `
  insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
    invoice_lines_count, received_at, scheduled_for, state, due_at)
  values ('org_a', '00000000-0000-5000-8000-00000000000${id}', '${id}', '', '{}', 0, 0, now(), now(), '${state}', ${due})`

const last = Object.keys(Migrations.all).at(-1) ?? ""

// An object of the operator's own schema takes the place of the system's.
const shadowed = "-c search_path=public,pg_catalog"

/** Faults, each with what makes and undoes it, and the warnings of it. */
type Broken = readonly [
  fault: string,
  statements: string,
  undone: string,
  warnings: ReadonlyArray<RegExp | string>,
  options?: string
]

const broken: ReadonlyArray<Broken> = [
  [
    "an unknown migration",
    "insert into migrations (name) values ('99999_of_tomorrow')",
    "delete from migrations where name = '99999_of_tomorrow'",
    ["99999_of_tomorrow"]
  ],
  [
    "late and dead deletions",
    `${task("1", "scheduled", "now() - interval '90 s'")}; ${task("2", "dead", "null")}`,
    "delete from deletion_tasks",
    [/A deletion has been due for 9\d seconds/, "Dead deletions (every attempt failed): 1"]
  ],
  [
    "a transaction that stays open",
    `create view pg_stat_activity as select pid, usename, datname, application_name, '1'::xid as backend_xid,
      now() - interval '2 minutes' as xact_start from pg_catalog.pg_stat_activity where pid <> pg_backend_pid()`,
    "drop view public.pg_stat_activity",
    [/The transaction of process \d+ .+ has been open for 120 seconds/],
    shadowed
  ],
  [
    "a prepared transaction",
    "create view pg_prepared_xacts as select 'forgotten' as gid, now() - interval '1 hour' as prepared",
    "drop view public.pg_prepared_xacts",
    ["The prepared transaction forgotten has been open for 3600 seconds"],
    shadowed
  ],
  [
    "a clock that is behind",
    "create function clock_timestamp() returns timestamptz language sql return pg_catalog.clock_timestamp() - interval '10 s'",
    "drop function public.clock_timestamp",
    [/^Its clock is (9\.9|10\.0|10\.1) s behind this machine's/],
    shadowed
  ]
]

const roles = ["data-api", "intake", "worker"] as const

const problems = Effect.gen(function* () {
  const sql = yield* inheriting
  const said = [...(yield* MigrationsCheck.check(sql, roles)), ...(yield* changes(sql))]
  return said.filter(({ message, status }) => status !== "ok" && !message.includes("is a superuser"))
}).pipe(Effect.scoped)

const isWhole = Effect.map(problems, (found) => assert.deepStrictEqual(found, []))

type Findings = Readonly<Record<string, readonly [statements: string, undo?: string]>>

/** The findings, by what the statements break, and the statement that undoes it where the advice is none. */
const lacking: ReadonlyArray<Findings> = [
  {
    "The table audit_log is missing.": ["alter table audit_log rename to gone", "alter table gone rename to audit_log"],
    "The column deletion_tasks.trace_parent is missing.": [
      "alter table deletion_tasks rename trace_parent to gone",
      "alter table deletion_tasks rename gone to trace_parent"
    ],
    "The constraint id_of_the_organization of organizations is missing.": [
      "alter table organizations drop constraint id_of_the_organization"
    ],
    "The constraint pets_pkey of pets is named Pets_new.": [
      'alter table pets rename constraint pets_pkey to "Pets_new"'
    ],
    "The index pets_created is named Created.": ['alter index pets_created rename to "Created"'],
    "The index pets_search is missing.": ["drop index pets_search"],
    "The trigger removed of pets is missing.": ["drop trigger removed on pets"],
    "The function public.change_mark() is missing.": ["drop function change_mark()"]
  },
  {
    "The column intake_secrets.secret differs from the migrations.": [
      "alter table intake_secrets alter column secret type varchar(80)",
      "alter table intake_secrets alter column secret type text"
    ],
    "The column invoices.is_deleted differs from the migrations.": [
      "alter table invoices alter column is_deleted drop default",
      "alter table invoices alter column is_deleted set default false"
    ],
    "The column deletion_tasks.received_at differs from the migrations.": [
      "alter table deletion_tasks alter column received_at drop not null",
      "alter table deletion_tasks alter column received_at set not null"
    ],
    "The constraint id_of_the_organization of organizations differs from the migrations.": [
      "alter table organizations drop constraint id_of_the_organization, add constraint id_of_the_organization check (id = organization_id) not valid"
    ],
    "The index pets_search differs from the migrations.": [
      "update pg_index set indisvalid = false where indexrelid = 'pets_search'::regclass"
    ],
    "The index pets_created differs from the migrations.": [
      "drop index pets_created; create index pets_created on pets (created_at)"
    ],
    "The trigger kept of removals differs from the migrations.": ["alter table removals enable trigger kept"],
    "The function public.change_mark() differs from the migrations.": [
      "create or replace function change_mark() returns void language sql as ''"
    ],
    "The function public.trimmed(text) differs from the migrations.": [
      "create or replace function trimmed(value text) returns text language sql immutable parallel safe return value"
    ]
  },
  {
    "The role practice_data_api lacks SELECT on pets, EXECUTE on function touch_api_key(bytea).": [
      "revoke select on pets from practice_data_api; revoke execute on function touch_api_key from practice_data_api"
    ],
    "The role practice_data_writer lacks DELETE on pets.": ["revoke delete on pets from practice_data_writer"],
    "The role practice_data_intake lacks INSERT on deletion_tasks.": [
      "revoke insert (payload) on deletion_tasks from practice_data_intake"
    ]
  },
  {
    "The role practice_data_worker has excess privileges: DELETE on pets.": [
      "grant delete on pets to practice_data_worker"
    ],
    "Every role has excess privileges: EXECUTE on function change_begin().": [
      "grant execute on function change_begin to public"
    ],
    "Every login may create objects in the schema public, such as functions that others call in error.": [
      "grant create on schema public to public"
    ]
  }
]

layer(begun, { excludeTestServices: true })("about a database the doctor", (it) => {
  it.effect("warns of a superuser, unless nothing needs a role, and of nothing else if all is well", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      assert.isTrue((yield* MigrationsCheck.check(sql, [])).every(({ status }) => status === "ok"))
      const findings = yield* of(url)
      has(findings, "warn", /is a superuser/)
      isFine(findings.filter(({ message }) => !message.includes("is a superuser")))
      has(findings, "ok", /^PostgreSQL \d+.+, a primary, .+ a statement takes \d+ ms/)
      has(findings, "ok", "have the requested settings")
      for (const role of ["api", "intake", "worker"])
        has(findings, "ok", `has the privileges of practice_data_${role}.`)
    })
  )

  it.effect.each(broken)(
    "reports %s",
    ([, statements, undone, expected, options = ""]) =>
      Effect.gen(function* () {
        const url = new URL((yield* TestDatabase).url)
        if (options !== "") url.searchParams.set("options", options)
        yield* during(statements, undone)
        const findings = yield* of(url.href)
        for (const message of expected) has(findings, "warn", message)
      }),
    long
  )

  it.effect(
    "compares no objects where migrations are missing",
    () =>
      Effect.gen(function* () {
        yield* during(
          `delete from migrations where name = '${last}'; drop index pets_search`,
          `insert into migrations (name) values ('${last}'); create index pets_search on pets (organization_id, updated_at, id, created_at)`
        )
        for (const [url, message] of [
          [(yield* TestDatabase).url, `It lacks the migrations ${last}.`],
          [yield* emptyDatabase, "It is not migrated."]
        ] as const) {
          const failures = (yield* of(url)).filter(({ status }) => status === "fail")
          assert.deepStrictEqual(messagesOf(failures), [message])
        }
      }),
    long
  )

  it.effect(
    "reports the privileges that the roles of the process need and the login lacks",
    () =>
      Effect.gen(function* () {
        const { name, url } = yield* newLogin("intake")
        const all = yield* of(url)
        has(all, "fail", `The login ${name} lacks SELECT on api_keys`)
        has(all, "fail", /lacks .+, which ROLES=worker needs/)
        isFine(yield* of(url, { ROLES: "intake" }))
        const ofKeys = of(`${url}?keys=apart`, { CREDENTIALS_DATABASE_URL: url }, "CREDENTIALS_DATABASE_URL")
        const [failed, ...others] = (yield* ofKeys).filter(({ status }) => status === "fail")
        assert.deepStrictEqual([failed?.advice, others], [`grant practice_data_api to ${name}`, []])
        const { sql } = yield* TestDatabase
        yield* sql.unsafe(`grant select on api_keys to ${name}`)
        yield* sql.unsafe(`grant execute on function touch_api_key to ${name}`)
        isFine(yield* ofKeys)
        const database = new URL(url).pathname.slice(1)
        yield* during(
          `revoke connect on database ${database} from public`,
          `grant connect on database ${database} to public`
        )
        has(yield* of(url), "fail", "permission denied for database")
      }),
    long
  )

  it.effect(
    "reports too few connections, of the server or of the login",
    () =>
      Effect.gen(function* () {
        const { sql, url } = yield* TestDatabase
        has(yield* of(url, { DATABASE_POOL_SIZE: "1000" }), "fail", /needs 3000 connections of \d+\./)
        const limited = yield* newLogin("api")
        yield* sql.unsafe(`alter role ${limited.name} connection limit 5`)
        has(yield* of(limited.url), "fail", "needs 30 connections of 5.")
        has(yield* of(limited.url, { ROLES: "worker" }), "fail", "needs 10 connections of 5.")
      }),
    long
  )

  it.effect("reports the settings that a pooler keeps from sessions, and the statements that set them", () =>
    Effect.gen(function* () {
      const { name, url } = yield* newLogin("api")
      const asked = { applicationName: "doctor", maxConnections: 1, statementTimeout: "5 seconds" } as const
      const pool = { ...asked, url: Redacted.make(url), settings: { ...inOrder, ...lockTimeout } }
      // As a pooler has it: nothing is asked for.
      const check = Effect.gen(function* () {
        const sql = yield* clientOf(url)
        yield* sql`reset statement_timeout`
        yield* sql`set session timezone to default`
        return yield* sessionSettingsLost({ variable: "DATABASE_URL", pool, sql })
      }).pipe(Effect.scoped)
      const [lost] = yield* check
      assert.match(lost?.message ?? "", /enable_seqscan is on instead of off.*\. A connection pooler drops them\.$/)
      const statements = lost?.advice?.replace("Run: ", "").split("; ") ?? []
      const seqscan = statements.find((statement) => statement.includes("enable_seqscan")) ?? ""
      assert.match(seqscan, new RegExp(`^alter role ${name} in database \\w+ set enable_seqscan = 'off'$`))
      // A login may set its own.
      const sql = yield* clientOf(url)
      for (const statement of statements) yield* sql.unsafe(statement)
      const [kept, ...others] = yield* check
      assert.deepStrictEqual([kept?.status, others], ["ok", []])
    })
  )

  it.effect.each(lacking.map((faults) => [Object.keys(faults).join(" "), faults] as const))(
    "names what is broken, and the statements that mend it: %s",
    ([, faults]) =>
      Effect.gen(function* () {
        for (const [statements] of Object.values(faults)) yield* run(statements)
        const found = yield* problems
        assert.sameMembers(messagesOf(found), Object.keys(faults))
        // What is not mended, the next one finds.
        for (const finding of found) {
          const [, undo] = faults[messagesOf([finding]).join()] ?? []
          yield* undo === undefined ? mend(finding.advice ?? "") : run(undo)
        }
      })
  )

  it.effect("renders the rows that were written without the trigger for that", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* run("drop trigger zz_written on pets")
      yield* sql`insert into pets (organization_id, id, record, change_position) values ('org_1', 'a', '', 0)`
      for (const { advice } of yield* problems) yield* mend(advice ?? "")
      const rows = yield* sql`delete from pets returning starts_with(record, '{"id":"a","name":') as "isRendered"`
      assert.deepStrictEqual(rows, [{ isRendered: true }])
    })
  )

  it.effect("names a disabled trigger of changes, whose order restarts when it is mended", () =>
    Effect.gen(function* () {
      yield* run("alter table pets disable trigger removed")
      const [found, consequence, ...others] = yield* problems
      assert.strictEqual(found?.message, "The trigger removed of pets differs from the migrations.")
      assert.include(consequence?.message, "The order of changes of pets must restart")
      assert.deepStrictEqual(others, [])
      yield* run(found?.advice ?? "")
      yield* isWhole
    })
  )

  it.effect("names each role that may not use the schema", () =>
    Effect.gen(function* () {
      yield* run("revoke usage on schema public from public")
      const found = yield* problems
      const names = messagesOf(found).map((text) => /data_(\w+) lacks USAGE on schema public/.exec(text)?.[1])
      assert.deepStrictEqual(names, ["api", "intake", "worker", "writer"])
      for (const { advice = "" } of found) yield* run(advice)
      yield* isWhole
      yield* run("grant usage on schema public to public")
    })
  )

  it.effect("names nothing of the operator's own, nor of what the service changes itself", () =>
    Effect.gen(function* () {
      for (const statement of [
        "create or replace function change_base() returns bigint language sql stable parallel safe return 7000",
        "create index own on pets (breed)",
        "alter table pets add column own text default 'mine' not null",
        "create function own() returns trigger language plpgsql as 'begin return new; end'",
        "create trigger own before update on pets for each row execute function own()",
        "create table own_records (id text primary key)",
        "grant select on intake_secrets to practice_data_worker"
      ])
        yield* run(statement)
      yield* isWhole
    })
  )
})

test.live(
  "The doctor tells of replicas that cannot be written, and that follow no more, and of missing roles",
  () =>
    Effect.gen(function* () {
      const primary = yield* Cluster.make()
      const replica = yield* Cluster.standbyOf(primary)
      const [onPrimary, onReplica] = [yield* clientOf(primary.url), yield* clientOf(replica.url)]
      yield* Migrations.migrate(onPrimary)
      yield* eventually(
        "the replica has the tables",
        onReplica`select to_regclass('change_marks') is not null as is_there`,
        ([row]) => row?.["is_there"] === true
      )
      const both = { DATABASE_URL: primary.url, READ_DATABASE_URL: replica.url }
      const fine = yield* examined(both)
      has(fine, "ok", ", a replica, ", "READ_DATABASE_URL")
      has(fine, "ok", "It follows DATABASE_URL", "READ_DATABASE_URL")
      assert.isUndefined(fine.find(({ status }) => status === "fail"))
      has(yield* examined({ DATABASE_URL: replica.url }), "fail", "It is a read-only replica.")
      yield* onReplica`select pg_promote()`
      has(yield* examined(both), "fail", "no longer follows its primary", "READ_DATABASE_URL")
      yield* onPrimary`alter role practice_data_intake rename to gone`
      has(yield* examined(both), "fail", "The role practice_data_intake does not exist.", "DATABASE_URL")
    }),
  long
)
