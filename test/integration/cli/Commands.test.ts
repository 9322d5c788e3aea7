/** The commands of operators, over a Postgres. */
import { assert, beforeEach, layer } from "@effect/vitest"
import { Effect, Option, Schema, Semaphore } from "effect"
import { show } from "../../../src/deletions/OperatorTasks.ts"
import { cli, programArgs, runWith } from "../../support/cli.ts"
import { root } from "../../support/Process.ts"
import { type Ended, run } from "../../support/run.ts"
import { deliveryWith, makeDead, reason, Tasks } from "../../support/deletions/taskFixture.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { live, long } from "../../support/tries.ts"

/** The output of a command that has nothing to note. */
const succeeds = (...command: ReadonlyArray<string>) =>
  Effect.map(cli(...command), ({ code, stdout, stderr }) => {
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
    return stdout
  })

/** The object that a text of JSON stands for. */
const parse = Schema.decodeEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** The line of a command that is refused. */
const lineOf = ({ code, stdout, stderr }: Ended) => {
  assert.deepStrictEqual({ code, stdout }, { code: 1, stdout: "" })
  assert.match(stderr, /^[^\n]+\n$/)
  return stderr.trim()
}

/** The entries of the audit log that name something, the latest first. */
const logged = (named: string) =>
  Effect.map(succeeds("audit", "list", "--limit", "1000"), (log) =>
    log.split("\n").filter((entry) => entry.includes(named))
  )

const refuses = (...command: ReadonlyArray<string>) => Effect.map(cli(...command), lineOf)

const refusedNote = (owner: string) =>
  `${owner} has no valid signing secret: its deliveries get 401. To accept unsigned ones, run: secrets allow-unsigned --organization ${owner}`

/** Commands that are not understood, with a part of the answer. */
const wrong = [
  ["keys destroy", "destroy"],
  ["tasks show task_1", "UUID"],
  ["tasks replay --idempotency-key k", "--organization"],
  ["sync copy.db --api-key k", "sqlite:FILE"],
  ["keys create --name n --organization org_a\n", "the id of an organization"],
  ["tasks show \u009b31m", "UUID"]
] as const

// These claim whatever is due.
const inTurn = Semaphore.withPermits(Semaphore.makeUnsafe(1), 1)

// Requests are sent again at once.
beforeEach(() => void (Math.random = () => 0))

layer(Tasks.layer, { ...live, concurrent: true })("The command", (it) => {
  it.effect("`tasks list` prints a table of the tasks of a state and an organization, with their errors", () =>
    Effect.gen(function* () {
      const { dead, completed, running, scheduled } = yield* Tasks
      const all = yield* succeeds("tasks", "list")
      for (const id of [dead, completed, running, scheduled]) assert.include(all, id)
      const lines = (yield* succeeds("tasks", "list", "--json")).trim().split("\n")
      const ids = (yield* Effect.forEach(lines, (line) => parse(line))).map(({ id }) => id)
      assert.includeMembers(ids, [dead, completed])
      const some = yield* succeeds("tasks", "list", "--state", "dead", "--organization", "org_a", "--limit", "1")
      for (const text of [dead, reason]) assert.include(some, text)
      for (const id of [completed, running, scheduled]) assert.notInclude(some, id)
    })
  )

  it.effect("`tasks show` prints a task and its outcome, by its id or its Idempotency-Key", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const shown = yield* succeeds("tasks", "show", completed)
      assert.match(shown, /^state +completed$/m)
      assert.match(shown, /^outcome\.invoices\.deleted +0$/m)
      assert.match(shown, /^outcome\.invoices\.not_found +1$/m)
      assert.match(shown, /^received_at +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d$/m)
      assert.notInclude(shown, "payload")
      const byKey = ["tasks", "show", "--organization", "org_a", "--idempotency-key"]
      assert.strictEqual(yield* succeeds(...byKey, "completed"), shown)
      assert.match(yield* refuses(...byKey, "nope"), /^No such task: [\da-f-]{36}$/)
      const { deletions: payload } = deliveryWith("org_a", "completed")
      const json = yield* parse(yield* succeeds("tasks", "show", completed, "--json"))
      assert.deepInclude(json, { id: completed, payload, due_at: null })
      assert.include(yield* refuses("tasks", "show", completed, "--organization", "org_b"), "No such task")
    })
  )

  it.effect("`tasks replay` makes a dead task due and logs it, and refuses a task that is not dead", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const id = yield* makeDead("org_e", "replayed by command")
      assert.include(yield* refuses("tasks", "replay", id, "--organization", "org_b"), "No such task")
      assert.strictEqual(yield* succeeds("tasks", "replay", id, "--organization", "org_e"), `Replaying ${id}\n`)
      const replayed = yield* show({ id, organization: "org_e" })
      assert.deepInclude(Option.getOrUndefined(replayed), { state: "scheduled", attempts: 0 })
      assert.match((yield* logged(id)).join(), /command line +task.replay +replayed +\S+ +org_e$/)
      const refusal = yield* refuses("tasks", "replay", completed)
      assert.strictEqual(refusal, `Task ${completed} is completed. Only dead tasks can be replayed.`)
      const unknown = "00000000-0000-5000-8000-000000000000"
      assert.include(yield* refuses("tasks", "replay", unknown), `No such task: ${unknown}`)
    }).pipe(inTurn)
  )

  it.effect("`tasks replay` of several shows their number, or replays them with --yes and logs it once", () =>
    Effect.gen(function* () {
      yield* makeDead("org_several", "first")
      yield* makeDead("org_several", "second")
      const replay = ["tasks", "replay", "--organization", "org_several"]
      assert.strictEqual(yield* refuses(...replay), "Nothing was changed. Add --yes to replay 2 dead tasks.")
      assert.strictEqual(yield* succeeds(...replay, "--yes"), "Replaying 2 tasks\n")
      assert.strictEqual(yield* refuses(...replay, "--yes"), "org_several has no dead task.")
      const [entry = "", ...others] = yield* logged("org_several")
      assert.match(entry, / tasks\.replay +2 replayed +dead +org_several/)
      assert.isEmpty(others)
    }).pipe(inTurn)
  )

  it.effect("`tasks cancel` cancels a dead task and logs it, and refuses one that has run", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const id = yield* makeDead("org_cancelled", "cancelled by command")
      assert.strictEqual(yield* succeeds("tasks", "cancel", id), `Cancelled ${id}\n`)
      const refusal = yield* refuses("tasks", "cancel", completed)
      assert.strictEqual(refusal, `Task ${completed} is completed. Only scheduled or dead tasks can be cancelled.`)
      assert.include(yield* succeeds("tasks", "list", "--state", "cancelled"), id)
      assert.match((yield* logged(id)).join(), /task\.cancel +cancelled/)
    }).pipe(inTurn)
  )

  it.effect("`deletions` finds an id, and undoes an item, or a task with --yes", () =>
    Effect.gen(function* () {
      const { completed, dead } = yield* Tasks
      const list = ["deletions", "list", "--organization", "org_a", "--id"]
      const row = ["invoice", "invoice_completed", "not_found"].join(" +")
      const listed = yield* succeeds(...list, "invoice_completed")
      assert.match(listed, new RegExp(`^${row} +[-0-9]+ [:0-9]+ +- +${completed}$`, "m"))
      assert.strictEqual((yield* cli(...list, "invoice_dead")).stdout, "")
      const shown = yield* succeeds("tasks", "show", completed)
      for (const line of [/^items.invoice_not_found +1$/m, new RegExp(`^${row}`, "m")]) assert.match(shown, line)
      const more = yield* cli("tasks", "show", completed, "--limit", "1")
      assert.strictEqual(more.stderr, "1 more: raise --limit.\n")
      const undo = ["deletions", "undo", "--organization", "org_a"]
      assert.strictEqual(yield* succeeds(...undo, "--line", "line_completed"), "Undone: 1 item\n")
      assert.match(yield* refuses(...undo, "--line", "line_completed"), /^No deletion of org_a names the line/)
      const whole = ["deletions", "undo", "--task", completed]
      assert.strictEqual(yield* refuses(...whole), "Nothing was changed. Add --yes to undo 1 item.")
      assert.strictEqual(yield* succeeds(...whole, "--yes"), "Undone: 1 item\n")
      assert.match(yield* refuses(...whole), /is completed and has nothing to undo\.$/)
      assert.match(yield* refuses("deletions", "undo", "--task", dead), /is dead and has nothing to undo\. Cancel it/)
      const json = yield* parse(yield* succeeds("tasks", "show", completed, "--json"))
      assert.deepInclude(json, { state: "completed", items: { invoice_undone: 1, line_undone: 1 } })
      assert.match(yield* succeeds("audit", "list"), /deletions.undo +1 undone +line line_completed +org_a$/m)
    }).pipe(inTurn)
  )

  it.effect("`organizations` creates and lists the record of an organization, and logs it", () =>
    Effect.gen(function* () {
      const create = ["organizations", "create", "org_new", "--name"] as const
      assert.strictEqual(yield* succeeds(...create, "Happy Paws"), "Created org_new\n")
      const again = yield* refuses(...create, "Another")
      assert.strictEqual(again, "Organization org_new already exists. Nothing was changed.")
      const { sql } = yield* TestDatabase
      const rows = yield* sql`select name from organizations where id = 'org_new'`
      assert.deepStrictEqual<unknown>(rows, [{ name: "Happy Paws" }])
      assert.match(yield* succeeds("audit", "list"), /organization\.create +created +org_new +org_new/)
      assert.match(yield* succeeds("organizations", "list"), /^org_new +Happy Paws +\d/m)
    })
  )

  it.effect.each([
    {
      create: ["keys", "create", "--name", "Warehouse sync"],
      kind: "key",
      words: "The key is shown once.",
      row: (id: string, key: string) => `${id}  org_made +${key.slice(0, 13)}  Warehouse sync .+ -  +-`,
      left: ""
    },
    {
      create: ["secrets", "add"],
      kind: "secret",
      words: "From now on deliveries of org_made must be signed.",
      row: (id: string) => `${id}  org_made .+ -`,
      left: `. ${refusedNote("org_made")}`
    }
  ])("prints a new $kind alone and once, which is revoked once, and logs both", ({ create, kind, left, row, words }) =>
    Effect.gen(function* () {
      const [group = ""] = create
      const made = yield* cli(...create, "--organization", "org_made")
      assert.strictEqual(made.code, 0)
      assert.match(made.stdout, /^\S+\n$/)
      assert.include(made.stderr, words)
      const [id = ""] = /(?<=^Created )\w+/.exec(made.stderr) ?? []
      const secret = made.stdout.trim()
      const listed = yield* succeeds(group, "list", "--organization", "org_made")
      assert.match(listed, new RegExp(`^id .+\n${row(id, secret)}\n$`))
      assert.notInclude(listed, secret)
      assert.strictEqual(yield* succeeds(group, "revoke", id), `Revoked ${id}${left}\n`)
      const again = yield* refuses(group, "revoke", id)
      const name = kind === "secret" ? "signing secret" : kind
      assert.strictEqual(again, `No valid ${name} ${id} to revoke.`)
      const results = (yield* logged(id)).flatMap((entry) => /created|revoked/.exec(entry) ?? [])
      assert.deepStrictEqual(results, ["revoked", "created"])

      const { stdout } = yield* cli(...create, "--organization", "org_json", "--json")
      const object = yield* parse(stdout)
      assert.strictEqual(object["organization_id"], "org_json")
      assert.isString(object[kind])
      const listedAsJson = yield* succeeds(group, "list", "--organization", "org_json", "--json")
      assert.deepInclude(yield* parse(listedAsJson), { id: object["id"] })
    })
  )

  it.effect("refuses unsigned deliveries once the last secret is revoked, until they are allowed", () =>
    Effect.gen(function* () {
      const owner = ["--organization", "org_unsigned"] as const
      const [, id = ""] = /^Created (secret_\w+) /.exec((yield* cli("secrets", "add", ...owner)).stderr) ?? []
      const allow = ["secrets", "allow-unsigned", ...owner] as const
      const early = yield* refuses(...allow)
      assert.strictEqual(early, "org_unsigned has a valid signing secret, or never had one. Nothing was changed.")
      yield* succeeds("secrets", "revoke", id)
      const listed = yield* cli("secrets", "list", ...owner, "--json")
      assert.include(listed.stdout, `"id":"${id}"`)
      assert.strictEqual(listed.stderr, `${refusedNote("org_unsigned")}\n`)
      assert.deepStrictEqual(yield* cli("keys", "list", ...owner), { code: 0, stdout: "", stderr: "Nothing found.\n" })
      const allowed = "org_unsigned no longer has to sign its deliveries, unless REQUIRE_SIGNATURES is set\n"
      assert.strictEqual(yield* succeeds(...allow), allowed)
      assert.strictEqual(yield* refuses(...allow), early)
      assert.match((yield* logged("org_unsigned")).join(), /secret\.allow_unsigned +unsigned deliveries allowed/)
    })
  )

  it.effect.each(wrong)("exits with 2 for `%s`, and names what it expected: %s", ([command, names]) =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* cli(...command.split(" "))
      assert.deepStrictEqual({ code, stdout }, { code: 2, stdout: "" })
      assert.include(stderr, names)
      assert.match(stderr, /^Usage: practice-data /m)
      for (const control of ["\u001b", "\u009b"]) assert.notInclude(stderr, control)
    })
  )

  it.effect("refuses a database without tables, by its variable, until `migrate` has applied them", () =>
    Effect.gen(function* () {
      const environment = { DATABASE_URL: yield* emptyDatabase }
      for (const group of ["keys", "secrets", "tasks", "audit", "organizations"]) {
        const line = lineOf(yield* runWith(environment, [group, "list"]))
        assert.strictEqual(line, "The database of DATABASE_URL is not migrated. Run: npm run cli -- migrate", group)
      }
      const migrated = yield* runWith(environment, ["migrate"])
      assert.deepStrictEqual({ ...migrated, stdout: "" }, { code: 0, stdout: "", stderr: "" })
      assert.match(migrated.stdout, /^Applied 00001_records, /)
      assert.strictEqual((yield* runWith(environment, ["migrate"])).stdout, "Nothing to apply\n")
      const withKeysElsewhere = { ...environment, CREDENTIALS_DATABASE_URL: yield* emptyDatabase }
      assert.strictEqual((yield* runWith(withKeysElsewhere, ["tasks", "list"])).code, 0)
      const ofKeys = lineOf(yield* runWith(withKeysElsewhere, ["keys", "list"]))
      assert.include(ofKeys, "The database of CREDENTIALS_DATABASE_URL is not migrated.")
    })
  )

  it.effect(
    "ends once the reader of its output has all of it, or has left",
    () =>
      Effect.gen(function* () {
        const { sql, url } = yield* TestDatabase
        yield* sql`insert into organizations (organization_id, id) select n, n from (
          select 'org_' || repeat('x', 80) || n as n from generate_series(1, 1000) n) many`
        const env = { ...process.env, DATABASE_URL: url }
        const list = ["organizations", "list", "--limit", "10000"]
        const scripts = ['"$@" 2>&1 | cat', '{ "$@"; echo $? >&2; } | head -c 1']
        const [whole, left] = yield* Effect.forEach(scripts, (script) =>
          run("sh", ["-c", script, "sh", ...programArgs, ...list], { cwd: root, env })
        )
        assert.match(whole?.stdout ?? "", /\norg_x+999 [^\n]+\n$/)
        assert.deepStrictEqual(left, { code: 0, stdout: "i", stderr: "141\n" })
      }),
    long
  )

  it.effect.each([
    ["keys list", { DATABASE_URL: "postgres://someone:s3cret@127.0.0.1:1/nothing" }, 1, "does not answer"],
    [
      "sync sqlite:/proc/x",
      { PRACTICE_DATA_API_KEY: "s3cret", PRACTICE_DATA_URL: "http://127.0.0.1:1" },
      75,
      "127.0.0.1:1"
    ]
  ] as const)("names what does not respond: `$0` exits with $2", ([command, environment, code, names]) =>
    Effect.gen(function* () {
      const { stderr, ...ended } = yield* runWith(environment, command.split(" "))
      assert.deepStrictEqual(ended, { code, stdout: "" })
      assert.include(stderr, names)
      assert.notInclude(stderr, "s3cret")
    })
  )
})
