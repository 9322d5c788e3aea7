/** The findings of the doctor: about variables, databases that cannot be reached or in which something is wrong, and the processor. */
import { NodeServices } from "@effect/platform-node"
import { assert, describe, it as test, layer } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Migrations from "../../../src/database/Migrations.ts"
import * as Doctor from "../../../src/operations/doctor/Doctor.ts"
import { json } from "../../support/Client.ts"
import * as Stripe from "../../support/stripe.ts"
import { emptyDatabase, newLogin, TestDatabase } from "../../support/TestDatabase.ts"
import { live, long } from "../../support/tries.ts"

/** Examines an installation that has these variables. It takes a free port unless one is given. */
const examined = (environment: Readonly<Record<string, string>>) =>
  Doctor.examine().pipe(
    Effect.scoped,
    Effect.provide([NodeServices.layer, Reactivity.layer]),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { PORT: "0", ...environment } }))
  )

const textOf = ({ advice = "", area, message, status }: Doctor.Finding) => `${status} ${area}: ${message} ${advice}`

/** Fails unless there is such a finding, with advice where something is wrong. */
const has = (
  findings: ReadonlyArray<Doctor.Finding>,
  status: Doctor.Finding["status"],
  message: RegExp | string,
  area?: string
) => {
  const found = findings.filter(
    (each) =>
      each.status === status &&
      (area === undefined || each.area === area) &&
      (typeof message === "string" ? each.message.includes(message) : message.test(each.message))
  )
  assert.isAbove(found.length, 0, `${status} ${String(message)} is not among:\n${findings.map(textOf).join("\n")}`)
  for (const each of found) assert.strictEqual(each.advice === undefined, status === "ok")
}

/** Fails if something is wrong. The databases of tests are on one server, and share its roles. */
const isFine = (findings: ReadonlyArray<Doctor.Finding>) => {
  const faults = findings.filter(({ message, status }) => status !== "ok" && !message.includes("in other databases"))
  assert.deepStrictEqual(faults.map(textOf), [])
}

const secret = "s3cret-passw0rd"
const nowhere = `postgres://someone:${secret}@127.0.0.1:1/nothing`

const processor = "Payment processor"

type Expected = readonly [status: "ok" | "warn" | "fail", message: RegExp | string, area?: string]

const cases: ReadonlyArray<readonly [what: string, Readonly<Record<string, string>>, ReadonlyArray<Expected>]> = [
  [
    "variables that are wrong",
    { DATABASE_URL: nowhere, STRIPE_SECRET_KEY: secret, DELETION_DELAY: "soon", RATE_LIMIT: "0" },
    [
      ["fail", "DELETION_DELAY: expected a duration"],
      ["fail", "RATE_LIMIT: expected an integer"]
    ]
  ],
  [
    "databases that cannot be reached, and the rest",
    { DATABASE_URL: nowhere, CREDENTIALS_DATABASE_URL: nowhere.replace("nothing", "keys") },
    [
      ["fail", "ECONNREFUSED", "DATABASE_URL"],
      ["fail", "ECONNREFUSED", "CREDENTIALS_DATABASE_URL"],
      ["warn", "It is not configured", processor]
    ]
  ],
  [
    "the folder of an embedded database",
    { DATA_DIR: "memory" },
    [["ok", "The service keeps it in DATA_DIR=memory", "Embedded database"]]
  ]
]

describe.concurrent("the doctor", () => {
  test.live.each(cases)("reports %s, without secrets", ([, environment, expected]) =>
    Effect.gen(function* () {
      const findings = yield* examined(environment)
      for (const [status, message, area] of expected) has(findings, status, message, area)
      assert.notInclude(json(findings), secret)
    })
  )

  test.live("does not look for a processor that no role needs", () =>
    Effect.map(examined({ DATABASE_URL: nowhere, ROLES: "intake,worker" }), (findings) =>
      assert.notInclude(json(findings), processor)
    )
  )
})

const key = "sk_test_of_the_double"

describe("over a database,", long, () => {
  layer(TestDatabase.layerDemo, live)("the doctor", (it) => {
    it.effect("tries the payment processor with an account that is connected", () =>
      Effect.gen(function* () {
        const { url, sql } = yield* TestDatabase
        const stripe = yield* Stripe.StripeDouble
        const environment = { DATABASE_URL: url, STRIPE_SECRET_KEY: key, STRIPE_API_URL: stripe.url.href }
        const fine = yield* examined(environment)
        has(fine, "ok", "It responds.", processor)
        const wrongKey = yield* examined({ ...environment, STRIPE_SECRET_KEY: "sk_live_wrong" })
        has(wrongKey, "fail", "It is unusable", processor)
        const down = yield* examined({ ...environment, STRIPE_API_URL: "http://127.0.0.1:1" })
        has(down, "fail", /StripeConnectionError/, processor)
        yield* stripe.fail(Stripe.rateLimit())
        has(yield* examined(environment), "warn", "(RateLimited)", processor)
        yield* stripe.fail(Stripe.lacksPermission)
        has(yield* examined(environment), "fail", /may not read \S+ \(.*rak_payout_read/, processor)
        yield* sql`update clinics set processor_account = null`
        has(yield* examined(environment), "ok", "No clinic has a connected account to test", processor)
      }).pipe(Effect.provide(Stripe.StripeDouble.layer(key)))
    )
  })
})

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

layer(begun, live)("about a database the doctor", (it) => {
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
    Effect.map(Effect.flatMap(emptyDatabase, of), (all) => has(all, "fail", "It is not migrated."))
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
