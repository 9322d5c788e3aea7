/** The commands about tasks and secrets, run as operators run them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Option, Redacted } from "effect"
import * as IntakeSecrets from "../../../src/deletions/IntakeSecrets.ts"
import { show } from "../../../src/deletions/Tasks.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { long } from "../../support/tries.ts"
import { cli, cliProcess, type Ended, runWith } from "../../support/cli.ts"
import { makeDead, parse, reason, Tasks } from "../../support/deletions/taskFixture.ts"

/** What a command does that has nothing to say beside its data. */
const succeeds = (...command: ReadonlyArray<string>) =>
  Effect.map(cli(...command), ({ code, stdout, stderr }) => {
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
    return stdout
  })

/** What a command prints that makes a secret, and says about it. */
const makes = (...command: ReadonlyArray<string>) =>
  Effect.map(cli(...command), ({ code, stdout, stderr }) => {
    assert.strictEqual(code, 0)
    assert.match(stdout, /^\S+\n$/)
    const [id = ""] = /(?<=^Created )\w+/.exec(stderr) ?? []
    return { id, secret: stdout.trim(), words: stderr }
  })

/** The one line of a command that ends with a code and does nothing. */
const lineOf = ({ code, stdout, stderr }: Ended) => {
  assert.deepStrictEqual({ code, stdout }, { code: 1, stdout: "" })
  assert.match(stderr, /^[^\n]+\n$/)
  return stderr.trim()
}

const refuses = (...command: ReadonlyArray<string>) => Effect.map(cli(...command), lineOf)

const unknownTask = "00000000-0000-5000-8000-000000000000"

/** Commands that ask for what is not there. */
const ofNothing = [
  "keys revoke nope",
  "secrets revoke nope",
  `tasks show ${unknownTask}`,
  `tasks replay ${unknownTask}`
]

/** Commands that need a database, all but `migrate`. */
const ofDatabases = [
  ...ofNothing,
  "keys list",
  "secrets list",
  "tasks list",
  "keys create --organization o --name n",
  "secrets add --organization o"
]

/** Ids that no organization has. */
const noIds = ["", " ", " org_a", "org_a\n", "org\0a", "o".repeat(129), "\ud800"]

/** Commands that cannot be understood, and what their answer names. */
const wrong = [
  { command: "tasks show task_1", names: "UUID" },
  { command: "tasks list --limit 0", names: "between 1 and 10000" },
  { command: "tasks list --state lost", names: "scheduled" },
  { command: "secrets add", names: "organization" },
  { command: "keys create --organization org_a", names: "name" },
  { command: "keys destroy", names: "destroy" },
  { command: "keys list --everything", names: "--everything" },
  { command: "tasks show", names: "Give either a task-id" },
  { command: "tasks replay --idempotency-key k", names: "--organization" },
  { command: "search chrges", names: "Did you mean charges?" },
  { command: "search charges --filter statos=open", names: "Did you mean status?" },
  { command: "search charges --limit 3 --all", names: "either --limit or --all" },
  { command: "search invoices --filter include_deleted=maybe", names: "true or false" },
  { command: "get organization --api-key k org_a", names: "takes no id" },
  { command: "get charges --api-key k", names: "Give the id" },
  { command: "get charges charge_1", names: "PRACTICE_DATA_API_KEY" },
  { command: "send --organization org_a", names: "--invoice" },
  { command: "openapi v2", names: "v1" }
]

const unanswering = "postgres://someone:s3cret@127.0.0.1:1/nothing"

layer(Tasks.layer, { excludeTestServices: true, concurrent: true })("The command", (it) => {
  it.effect("`tasks list` prints a table of the tasks that were asked for, with what went wrong", () =>
    Effect.gen(function* () {
      const { dead, completed, running, scheduled } = yield* Tasks
      const all = yield* succeeds("tasks", "list")
      for (const id of [dead, completed, running, scheduled]) assert.include(all, id)
      const some = yield* succeeds("tasks", "list", "--state", "dead", "--organization", "org_a", "--limit", "1")
      assert.include(some, dead)
      assert.include(some, reason)
      for (const id of [completed, running, scheduled]) assert.notInclude(some, id)
    })
  )

  it.effect.each(ofNothing)("refuses `%s`, and says why on standard error", (command) =>
    Effect.gen(function* () {
      const args = command.split(" ")
      assert.include(yield* refuses(...args), args.at(-1) ?? "")
    })
  )

  it.effect("`tasks show` tells a task and its outcome, by its id or the Idempotency-Key of its delivery", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const shown = yield* succeeds("tasks", "show", completed)
      assert.match(shown, /^State +completed$/m)
      assert.match(shown, /^Deleted +nothing$/m)
      assert.match(shown, /^Not deleted +1 invoice: the organization has no such invoice\n +1 line: .+ no such line$/m)
      assert.match(shown, /^Received +\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/m)
      const byKey = ["tasks", "show", "--organization", "org_a", "--idempotency-key", "completed"]
      assert.strictEqual(yield* succeeds(...byKey), shown)
      assert.include(yield* refuses("tasks", "show", "--organization", "org_a", "--idempotency-key", "nope"), "nope")
    })
  )

  it.effect("`tasks show` prints everything as JSON, and fails when there is no such task", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const shown = yield* parse(yield* succeeds("tasks", "show", completed, "--json"))
      const task = yield* show({ id: completed, organization: undefined })
      assert.deepStrictEqual<unknown>(shown, Option.getOrUndefined(task))
      assert.strictEqual(
        yield* refuses("tasks", "show", completed, "--organization", "org_b"),
        `There is no task ${completed} of org_b.`
      )
    })
  )

  it.effect("`tasks replay` makes a dead task due, and fails when a task is not dead", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const id = yield* makeDead("org_e", "replayed by command")
      assert.strictEqual(yield* succeeds("tasks", "replay", id, "--organization", "org_e"), `Replaying ${id}\n`)
      const replayed = yield* show({ id, organization: "org_e" })
      assert.deepInclude(Option.getOrUndefined(replayed), { state: "scheduled", attempts: 0 })
      const changed = yield* succeeds("audit", "list", "--limit", "1000")
      assert.match(changed, new RegExp(`command line +task.replay +replayed +${id} +org_e$`, "m"))
      assert.strictEqual(
        yield* refuses("tasks", "replay", completed),
        `Task ${completed} is completed. Only a dead task can be replayed.`
      )
    })
  )

  it.effect("`secrets add` prints a new secret alone, and says what changes for the organization", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const { id, secret, words } = yield* makes("secrets", "add", "--organization", "org_new")
      assert.deepStrictEqual(yield* sql`select id, secret from intake_secrets where organization_id = 'org_new'`, [
        { id, secret }
      ])
      assert.include(words, "deliveries of org_new must be signed")
    })
  )

  it.effect("`secrets list` and `secrets revoke` show ids and no secrets, and say when no secret is left", () =>
    Effect.gen(function* () {
      const { id, secret } = yield* IntakeSecrets.create("org_revoked")
      const listed = yield* succeeds("secrets", "list")
      assert.include(listed, id)
      assert.notInclude(listed, Redacted.value(secret))
      assert.include(yield* succeeds("secrets", "revoke", id), "org_revoked has no secret left")
      assert.strictEqual(yield* refuses("secrets", "revoke", id), `There is no secret ${id} that could be revoked.`)
    })
  )

  it.effect("`keys create` prints a new key alone, which `keys revoke` revokes once", () =>
    Effect.gen(function* () {
      const creating = ["keys", "create", "--organization", "org_keys", "--name", "Warehouse sync"]
      const { id, secret: key } = yield* makes(...creating)
      const listed = yield* succeeds("keys", "list", "--organization", "org_keys")
      assert.match(listed, new RegExp(`^ID .+\n${id}  org_keys +${key.slice(0, 13)}…  Warehouse sync .+ -  +-\n$`))
      assert.notInclude(listed, key)
      assert.strictEqual(yield* succeeds("keys", "revoke", id), `Revoked ${id}\n`)
      assert.strictEqual(yield* refuses("keys", "revoke", id), `There is no key ${id} that could be revoked.`)
    })
  )

  it.effect("with `--json`, `keys create` and `secrets add` print one object, and lists one a line", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      for (const command of ["keys create --name Test", "secrets add"]) {
        const { stdout } = yield* cli(...command.split(" "), "--organization", "org_json", "--json")
        const made = yield* parse(stdout)
        assert.strictEqual(made["organization_id"], "org_json")
        const list = [...command.split(" ").slice(0, 1), "list", "--organization", "org_json", "--json"]
        assert.deepInclude(yield* parse(yield* succeeds(...list)), { id: made["id"] })
      }
      const lines = (yield* succeeds("tasks", "list", "--json")).trim().split("\n")
      const tasks = yield* Effect.forEach(lines, parse)
      const [{ count } = { count: 0 }] = yield* sql<{
        count: number
      }>`select count(*)::int as count from deletion_tasks`
      assert.lengthOf(tasks, count)
    })
  )

  it.effect.each(["keys list", "secrets list", "tasks list", "tasks list --json"])(
    "says of an empty list that it is one, beside no data: `%s`",
    (command) =>
      Effect.gen(function* () {
        const { code, stdout, stderr } = yield* cli(...command.split(" "), "--organization", "org_none")
        assert.deepStrictEqual({ code, stdout }, { code: 0, stdout: "" })
        assert.match(stderr, /^.*org_none.+\n$/)
      })
  )

  it.effect("`keys create` and `secrets add` say what follows when the organization has no row yet", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      yield* sql`insert into organizations (organization_id, id) values ('org_there', 'org_there')`
      const commands = (organization: string) => [
        makes("keys", "create", "--organization", organization, "--name", "Test"),
        makes("secrets", "add", "--organization", organization)
      ]
      for (const command of commands("org_there")) assert.notInclude((yield* command).words, "no organization")
      for (const command of commands("org_absent")) {
        assert.include((yield* command).words, "There is no organization org_absent in the table organizations yet.")
      }
    })
  )

  it.effect.each(noIds)("makes nothing for an organization that cannot be: %j", (organization) =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      for (const command of [
        ["keys", "create", "--name", "Test", "--organization", organization],
        ["secrets", "add", "--organization", organization]
      ]) {
        const { code, stderr } = yield* cli(...command)
        assert.strictEqual(code, 2)
        assert.include(stderr, "the id of an organization")
      }
      const made = yield* sql`
        select from api_keys where not organization_id ~ '^org_' union all
        select from intake_secrets where not organization_id ~ '^org_'`
      assert.strictEqual(made.length, 0)
    })
  )

  it.effect("makes no key without a name", () =>
    Effect.gen(function* () {
      const { code, stderr } = yield* cli("keys", "create", "--organization", "org_unnamed", "--name", " ")
      assert.strictEqual(code, 2)
      assert.include(stderr, "what the key is for")
    })
  )

  it.effect.each(wrong)("refuses `$command` with a code, and names what it expected", ({ command, names }) =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* cli(...command.split(" "))
      assert.deepStrictEqual({ code, stdout }, { code: 2, stdout: "" })
      assert.include(stderr, names)
      assert.match(stderr, /^Usage: practice-data /m)
      assert.notInclude(stderr, "\u001b")
    })
  )

  it.effect("says of a database without tables that it is not migrated, until `migrate` has applied them", () =>
    Effect.gen(function* () {
      const environment = { DATABASE_URL: yield* emptyDatabase }
      for (const command of ofDatabases) {
        assert.strictEqual(
          lineOf(yield* runWith(environment, command.split(" "))),
          "The database of DATABASE_URL is not migrated. Run: npm run cli -- migrate",
          command
        )
      }
      const migrated = yield* runWith(environment, ["migrate"])
      assert.deepStrictEqual({ ...migrated, stdout: "" }, { code: 0, stdout: "", stderr: "" })
      assert.match(migrated.stdout, /^Applied 00001_records, /)
      assert.strictEqual((yield* runWith(environment, ["migrate"])).stdout, "Nothing to apply\n")
      assert.strictEqual((yield* runWith(environment, ["tasks", "list"])).code, 0)
    })
  )

  it.effect("names the variable of the keys' own database when that one is not migrated", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const environment = { DATABASE_URL: url, CREDENTIALS_DATABASE_URL: yield* emptyDatabase }
      assert.include(
        lineOf(yield* runWith(environment, ["keys", "list"])),
        "The database of CREDENTIALS_DATABASE_URL is not migrated."
      )
      assert.strictEqual((yield* runWith(environment, ["tasks", "list"])).code, 0)
    })
  )

  it.effect.each([...ofDatabases, "migrate"])("says in one line that the database does not answer: `%s`", (command) =>
    Effect.gen(function* () {
      const line = lineOf(yield* runWith({ DATABASE_URL: unanswering }, command.split(" ")))
      assert.include(line, "does not answer")
      assert.notInclude(line, "s3cret")
    })
  )

  it.effect("ends as a process with the code of its failure", () =>
    Effect.gen(function* () {
      assert.strictEqual((yield* cliProcess("keys", "destroy")).code, 2)
    })
  )

  it.effect(
    "ends as a process with the same codes and the same words",
    () =>
      Effect.gen(function* () {
        for (const command of [
          ["keys", "revoke", "nope"],
          ["tasks", "list", "--organization", "org_none"]
        ])
          assert.deepStrictEqual(yield* cliProcess(...command), yield* cli(...command))
      }),
    long
  )
})
