/**
 * The commands of clients, over the running service, and `serve`, which is the service.
 *
 * @module-tag long
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it as test, layer } from "@effect/vitest"
import { Effect } from "effect"
import { runWith, start } from "../../support/cli.ts"
import { parse } from "../../support/deletions/taskFixture.ts"
import { temporaryFolder } from "../../support/Process.ts"
import { options, Service } from "../../support/Service.ts"
import * as Client from "../../support/Client.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const environment = { PRACTICE_DATA_API_KEY: "pda_demo_oakridge" }

const run = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(Service, ({ address }) => runWith({ PRACTICE_DATA_URL: address, ...environment }, command))

/** The output, and the note that there is more, which a limit may have. */
const printed = (...command: ReadonlyArray<string>) =>
  Effect.map(run(...command), ({ code, stdout, stderr }) => {
    assert.strictEqual(code, 0, stderr)
    if (!command.includes("--limit")) assert.strictEqual(stderr, "")
    return stdout
  })

const records = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(printed(...command, "--json"), (text) => Effect.forEach(text.trim().split("\n"), parse))

layer(Service.layerEmbedded, options)("A command of a client", (it) => {
  it.effect("`get` prints one record, and `search` those that satisfy the filters, up to a limit, or all", () =>
    Effect.gen(function* () {
      const { ask } = yield* Service
      const charge = yield* printed("get", "charges", "charge_oakridge_0001")
      assert.match(charge, /^id +charge_oakridge_0001\n/)
      const [organization] = yield* records("get", "organization")
      assert.strictEqual(organization?.["id"], "org_oakridge")
      const filters = ["--all", "--filter", "include_deleted=true"]
      const body = yield* records("search", "consumption-logs", ...filters)
      const page = yield* ask("/consumption-logs/search", { include_deleted: true, limit: 1000 })
      assert.deepStrictEqual<unknown>({ body }, yield* parse(page.text))
      assert.lengthOf(yield* records("search", "psp-charges", "-f", "clinic=clinic_oakridge_01", "--limit", "105"), 105)
      const table = yield* printed("search", "invoices", "--fields", "id,total,updated_at", "--limit", "3")
      assert.match(table, /^id +total +updated_at\n(invoice_oakridge_\d+ +[\d.]+ +2026-\d\d-\d\d [\d:]+\n){3}$/)
      const none = yield* run("search", "charges", "--filter", "status=lost")
      assert.deepStrictEqual(none, { code: 0, stdout: "", stderr: "There is nothing to show.\n" })
    })
  )

  it.effect.each([
    ["get charges charge_harbor_0001", /^404 /],
    ["get charges charge_oakridge_0001 --api-key pda_wrong", /^401 /],
    ["send --organization org_oakridge --file /nowhere", /^\/nowhere cannot be read/]
  ] as const)("`%s` exits with 1, and the reason", ([command, reason]) =>
    Effect.map(run(...command.split(" ")), ({ code, stderr, stdout }) => {
      assert.deepStrictEqual({ code, stdout }, { code: 1, stdout: "" })
      assert.match(stderr, reason)
    })
  )

  it.effect("`send` delivers the items of flags and a file, and prints its receipt", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "delivery.json")
      writeFileSync(file, `{"invoices":[{"invoice_id":"invoice_oakridge_0007","clinic_id":null}]}`)
      const items = ["--invoice-line", "line_oakridge_0008_1", "--file", file]
      const sending = ["send", "--organization", "org_oakridge", ...items]
      const [receipt] = yield* records(...sending, "--key", "by-command")
      const counts = { invoices_count: 1, invoice_lines_count: 1 }
      assert.deepInclude(receipt, { status: "scheduled", idempotency_key: "by-command", ...counts })
      assert.match(yield* printed(...sending, "--key", "by-command"), /^status +duplicate$/m)
      const task = yield* printed("get", "invoice-deletions", "--idempotency-key", "by-command")
      assert.match(task, /^state +scheduled$/m)
      writeFileSync(file, `{"invoices":[{"invoice":"1"}]}`)
      assert.include((yield* run(...sending)).stderr, 'at ["invoices"][0]["invoice_id"]')
    })
  )
})

layer(TestDatabase.layerDemo, options)("serve", (it) => {
  it.effect.each([
    ["1", "SIGTERM"],
    ["2", "SIGINT"]
  ] as const)("runs %s processes until %s, and ends with 0", ([processes, signal]) =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const service = yield* start({ DATABASE_URL: url, PROCESSES: processes }, ["serve"])
      const client = yield* Client.make(yield* service.address)
      const ready = yield* client.call({ method: "GET", path: "/api/v1/health/ready", headers: {} })
      assert.strictEqual(ready.status, 200)
      yield* service.kill(signal)
      assert.deepStrictEqual(yield* service.ended, { code: 0, signal: null })
    })
  )
})

test.live("The command line ends with 1 and a line where `serve` cannot start", () =>
  Effect.gen(function* () {
    const service = yield* start({ DELETION_DELAY: "soon" }, ["serve"])
    assert.deepStrictEqual(yield* service.ended, { code: 1, signal: null })
    assert.match(service.output(), /^The configuration is wrong\. DELETION_DELAY[^\n]+\n$/)
  }).pipe(Effect.scoped)
)
