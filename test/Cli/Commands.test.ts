/** The commands about tasks and secrets, run as operators run them. */
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as SecretAdmin from "../../src/InvoiceDeletions/SecretAdmin.ts"
import * as TaskAdmin from "../../src/InvoiceDeletions/TaskAdmin.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { cli } from "./cli.ts"
import { makeDead, parse, reason, Tasks } from "./tasks.ts"

const succeeds = (...command: ReadonlyArray<string>) =>
  Effect.map(cli(...command), ({ code, stdout, stderr }) => {
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
    return stdout
  })

const unknownTask = "00000000-0000-5000-8000-000000000000"

/** Commands that cannot be understood, and what their answer names. */
const wrong = [
  { command: "tasks show task_1", names: "UUID" },
  { command: "tasks list --limit 0", names: "between 1 and 10000" },
  { command: "tasks list --state lost", names: "scheduled" },
  { command: "secrets add", names: "organization" }
]

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

  it.effect("`tasks show` prints a task as JSON, and says so when there is no such task", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const shown = yield* parse(yield* succeeds("tasks", "show", completed))
      assert.deepStrictEqual(shown, { ...(yield* TaskAdmin.show({ id: completed, organization: undefined })) })
      assert.strictEqual(
        yield* succeeds("tasks", "show", completed, "--organization", "org_b"),
        `No task ${completed}\n`
      )
    })
  )

  it.effect("`tasks replay` makes a dead task due, and says so when a task is not dead or not there", () =>
    Effect.gen(function* () {
      const { completed } = yield* Tasks
      const id = yield* makeDead("org_e", "replayed by command")
      assert.strictEqual(yield* succeeds("tasks", "replay", id, "--organization", "org_e"), `Replaying ${id}\n`)
      const replayed = yield* TaskAdmin.show({ id, organization: "org_e" })
      assert.deepInclude(replayed, { state: "scheduled", attempts: 0 })
      assert.strictEqual(
        yield* succeeds("tasks", "replay", completed),
        `Task ${completed} is completed. Only a dead task can be replayed.\n`
      )
      assert.strictEqual(yield* succeeds("tasks", "replay", unknownTask), `No task ${unknownTask}\n`)
    })
  )

  it.effect("`secrets add` shows a new secret once, with its id, and says what changes for the organization", () =>
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const [id, secret, notice] = (yield* succeeds("secrets", "add", "--organization", "org_new")).split("\n")
      assert.deepStrictEqual(yield* sql`select id, secret from intake_secrets where organization_id = 'org_new'`, [
        { id, secret }
      ])
      assert.include(notice, "deliveries of org_new must be signed")
    })
  )

  it.effect("`secrets list` and `secrets revoke` show ids and no secrets, and say when no secret is left", () =>
    Effect.gen(function* () {
      const { id, secret } = yield* SecretAdmin.create("org_revoked")
      const listed = yield* succeeds("secrets", "list")
      assert.include(listed, id)
      assert.notInclude(listed, Redacted.value(secret))
      assert.include(yield* succeeds("secrets", "revoke", id), "org_revoked has no secret left")
      assert.strictEqual(yield* succeeds("secrets", "revoke", id), `No secret ${id} that could be revoked\n`)
    })
  )

  it.effect.each(wrong)("refuses `$command` with a code, and names what it expected", ({ command, names }) =>
    Effect.gen(function* () {
      const { code, stdout, stderr } = yield* cli(...command.split(" "))
      assert.isAbove(code, 0)
      assert.include(stdout + stderr, names)
    })
  )
})
