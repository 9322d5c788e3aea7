/** The findings of the doctor about a database in which something is wrong. */
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import * as Migrations from "../../../src/database/Migrations.ts"
import { emptyDatabase, newLogin, TestDatabase } from "../../support/TestDatabase.ts"
import { examined, has, isFine } from "./examined.ts"

const of = (url: string, environment: Readonly<Record<string, string>> = {}, area = "DATABASE_URL") =>
  Effect.map(examined({ DATABASE_URL: url, ...environment }), (findings) =>
    findings.filter((finding) => finding.area === area)
  )

/** A database whose order of changes has begun: that of a copy of another has not. */
const begun = Layer.tap(TestDatabase.layer, (context) => Context.get(context, TestDatabase).sql`select change_begin()`)

const run = (text: string) =>
  Effect.flatMap(TestDatabase, ({ sql }) =>
    Effect.forEach(text.split("; "), (statement) => sql.unsafe(statement), { discard: true })
  )

/** Runs statements, and others when the scope closes: the tests share the database, one after the other. */
const during = (statements: string, undone: string) =>
  Effect.acquireRelease(run(statements), () => Effect.orDie(run(undone)))

const task = (id: string, state: string, due: string) => `
  insert into deletion_tasks (organization_id, id, idempotency_key, fingerprint, payload, invoices_count,
    invoice_lines_count, received_at, scheduled_for, state, due_at)
  values ('org_a', '00000000-0000-5000-8000-00000000000${id}', '${id}', '', '{}', 0, 0, now(), now(), '${state}', ${due})`

const unsettled = `insert into deletions_unsettled (organization_id, task_id, since)
  values ('org_a', '00000000-0000-5000-8000-000000000003', now() - interval '90 s')`

const last = Object.keys(Migrations.all).at(-1) ?? ""

type Broken = readonly [
  fault: string,
  statements: string,
  undone: string,
  expected: readonly ["warn" | "fail", RegExp | string],
  options?: string
]

/** Faults, each with what makes and undoes it, and the finding. */
const broken: ReadonlyArray<Broken> = [
  [
    "a late deletion",
    task("1", "scheduled", "now() - interval '90 s'"),
    "delete from deletion_tasks",
    ["warn", /A deletion has been due for 9\d seconds/]
  ],
  [
    "a dead deletion",
    task("2", "dead", "null"),
    "delete from deletion_tasks",
    ["warn", "Dead deletions (every attempt failed): 1"]
  ],
  [
    "an unsettled deletion",
    unsettled,
    "delete from deletions_unsettled",
    ["warn", /A deletion has not been settled for 9\d seconds/]
  ],
  [
    "a deletion that is not applied",
    `do $$ begin
       insert into invoices (organization_id, id) values ('org_a', 'served');
       insert into deletions (organization_id, task_id, kind, item, id, deleted_at, verdict)
         values ('org_a', '00000000-0000-5000-8000-000000000003', 'invoice', 1, 'served', now(), 'deleted');
       ${unsettled};
     end $$`,
    "with note as (delete from deletions_unsettled), fact as (delete from deletions) delete from invoices where id = 'served'",
    ["fail", "Deleted rows have been served for more than a minute: of 1 deletion."]
  ],
  [
    "a clock that is behind",
    "create function clock_timestamp() returns timestamptz language sql return pg_catalog.clock_timestamp() - interval '10 s'",
    "drop function public.clock_timestamp",
    ["fail", /^Its clock is (9\.9|10\.0|10\.1) s behind this machine's/],
    // An object of the operator's own schema takes the place of the system's.
    "-c search_path=public,pg_catalog"
  ],
  [
    "a migration that is missing",
    `delete from migrations where name = '${last}'`,
    `insert into migrations (name) values ('${last}')`,
    ["fail", `It lacks the migrations ${last}.`]
  ],
  [
    "a feed that is not whole",
    "drop index pets_changes",
    "create index pets_changes on pets (organization_id, change_position, id); select change_begin()",
    ["fail", "The feed lacks triggers or indexes of pets"]
  ],
  [
    "a feed that must restart",
    "alter table pets disable trigger removed",
    "select change_begin()",
    ["warn", "The order of changes of pets must restart"]
  ],
  [
    "privileges of everybody",
    "grant select on api_keys, pets to public",
    "revoke all on api_keys, pets from public",
    ["fail", "public has privileges on api_keys, pets: only the roles of the service may have any."]
  ],
  [
    "privileges of another role, on a column",
    "create role doctor_other; grant select (secret) on intake_secrets to doctor_other",
    "drop owned by doctor_other; drop role doctor_other",
    ["fail", "doctor_other has privileges on intake_secrets"]
  ],
  [
    "privileges on a function with its owner's rights",
    "grant execute on function change_begin to public",
    "revoke all on function change_begin from public",
    ["fail", "public has privileges on"]
  ]
]

layer(begun, { excludeTestServices: true })("about a database the doctor", (it) => {
  it.effect("warns of a superuser and shared roles, and of nothing else if all is well", () =>
    Effect.gen(function* () {
      const findings = yield* of((yield* TestDatabase).url)
      has(findings, "warn", /is a superuser/)
      has(findings, "warn", /^The roles practice_data_\.\.\. have privileges in other databases of the server too: /)
      isFine(findings.filter(({ message }) => !message.includes("is a superuser")))
      has(findings, "ok", /^PostgreSQL \d+.+, login .+; a statement takes \d+ ms/)
      has(findings, "ok", "It has all migrations.")
      for (const role of ["data-api", "intake", "worker"])
        has(findings, "ok", `The login has the privileges that ROLES=${role} needs.`)
      has(findings, "ok", "No deletion is late, dead or unsettled.")
      has(findings, "ok", "The feed of changes is whole.")
    })
  )

  it.effect.each(broken)("reports %s", ([, statements, undone, [status, message], options = ""]) =>
    Effect.gen(function* () {
      const url = new URL((yield* TestDatabase).url)
      if (options !== "") url.searchParams.set("options", options)
      yield* during(statements, undone)
      has(yield* of(url.href), status, message)
    })
  )

  it.effect("reports a database that is not migrated", () =>
    Effect.gen(function* () {
      has(yield* of(yield* emptyDatabase), "fail", "It is not migrated.")
    })
  )

  it.effect("reports the privileges that the roles of the process need and the login lacks", () =>
    Effect.gen(function* () {
      const { url } = yield* newLogin("intake")
      const all = yield* of(url)
      has(all, "fail", /^The login lacks execute on change_begin\(\), .+ and \d+ more, which ROLES=data-api needs/)
      has(
        all,
        "fail",
        /lacks delete on deletions, delete on deletions_unsettled, .+ and \d+ more, which ROLES=worker needs/
      )
      isFine(yield* of(url, { ROLES: "intake" }))
      const ofKeys = yield* of(
        `${url}?application_name=apart`,
        { CREDENTIALS_DATABASE_URL: url },
        "CREDENTIALS_DATABASE_URL"
      )
      const failed = ofKeys.filter(({ status }) => status === "fail").map(({ advice }) => advice)
      assert.deepStrictEqual(failed, [
        "Run: grant practice_data_api to the login, as one that has it with ADMIN OPTION. If it has this role, grant the role what it lacks."
      ])
    })
  )
})
