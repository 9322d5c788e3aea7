/**
 * The commands of clients, over the running service.
 *
 * @module-tag long
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "../../support/Process.ts"
import { options, Service } from "../../support/Service.ts"
import { parse } from "../../support/deletions/taskFixture.ts"
import { runWith } from "../../support/cli.ts"

const key = "pda_demo_oakridge"

const run = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(Service, ({ address }) => runWith({ PRACTICE_DATA_URL: address, PRACTICE_DATA_API_KEY: key }, command))

const printed = (...command: ReadonlyArray<string>) =>
  Effect.map(run(...command), ({ code, stdout, stderr }) => {
    assert.deepStrictEqual({ code, stderr }, { code: 0, stderr: "" })
    return stdout
  })

const records = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(printed(...command, "--json"), (text) => Effect.forEach(text.trim().split("\n"), parse))

const refused = (...command: ReadonlyArray<string>) =>
  Effect.map(run(...command), ({ code, stdout, stderr }) => {
    assert.deepStrictEqual({ code, stdout }, { code: 1, stdout: "" })
    return stderr
  })

layer(Service.layerEmbedded, options)("A command of a client", (it) => {
  it.effect("`get` tells one record, and fails where there is none", () =>
    Effect.gen(function* () {
      const charge = yield* printed("get", "charges", "charge_oakridge_0001")
      assert.match(charge, /^id +charge_oakridge_0001\n/)
      assert.match(charge, /^created_at +2026-01-05 11:00:00$/m)
      const [organization] = yield* records("get", "organization")
      assert.strictEqual(organization?.["id"], "org_oakridge")
      assert.match(yield* refused("get", "charges", "charge_harbor_0001"), /^404 /)
      assert.match(yield* refused("get", "charges", "charge_oakridge_0001", "--api-key", "pda_wrong"), /^401 /)
    })
  )

  it.effect("`search` tells the records that satisfy the filters, as many as asked, or all", () =>
    Effect.gen(function* () {
      const { ask } = yield* Service
      const two = yield* records("search", "charges", "--filter", "status=open", "--limit", "2")
      const page = yield* ask("/charges/search", { status: "open", limit: 2 })
      assert.deepStrictEqual<unknown>({ body: two }, yield* parse(page.text))
      const all = yield* records("search", "consumption-logs", "--all", "-f", "include_deleted=true")
      const whole = yield* ask("/consumption-logs/search", { include_deleted: true, limit: 1000 })
      assert.deepStrictEqual<unknown>({ body: all }, yield* parse(whole.text))
      assert.lengthOf(yield* records("search", "psp-charges", "-f", "clinic=clinic_oakridge_01", "--limit", "105"), 105)
      const table = yield* printed("search", "invoices", "--fields", "id,total,updated_at", "--limit", "3")
      assert.match(table, /^id +total +updated_at\n(invoice_oakridge_\d+ +[\d.]+ +2026-\d\d-\d\d [\d:]+\n){3}$/)
    })
  )

  it.effect("`search` says what is not found, and what the service refuses", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* run("search", "charges", "--filter", "status=lost"), {
        code: 0,
        stdout: "",
        stderr: "There are no charges to show.\n"
      })
      assert.include(yield* refused("search", "charges", "-f", "updated_at_since=soon"), "updated_at_since: ")
      assert.include(yield* refused("search", "charges", "--url", "http://127.0.0.1:1"), "127.0.0.1:1")
    })
  )

  it.effect("`send` delivers what flags and a file name, and tells its receipt", () =>
    Effect.gen(function* () {
      const file = join(yield* temporaryFolder, "delivery.json")
      yield* Effect.sync(() =>
        writeFileSync(file, `{"invoices":[{"invoice_id":"invoice_oakridge_0007","clinic_id":null}]}`)
      )
      const sending = [
        "send",
        "--organization",
        "org_oakridge",
        "--invoice-line",
        "line_oakridge_0008_1",
        "--file",
        file
      ]
      const [receipt] = yield* records(...sending, "--key", "by-command")
      assert.deepInclude(receipt, {
        status: "scheduled",
        idempotency_key: "by-command",
        invoices_count: 1,
        invoice_lines_count: 1
      })
      assert.match(yield* printed(...sending, "--key", "by-command"), /^Status +duplicate$/m)
      const task = yield* printed("get", "invoice-deletions", "--idempotency-key", "by-command")
      assert.match(task, /^state +scheduled$/m)
      yield* Effect.sync(() => writeFileSync(file, `{"invoices":[{"invoice":"1"}]}`))
      assert.include(yield* refused(...sending), "invoices.0.invoice_id")
      assert.include(yield* refused("send", "--organization", "org_oakridge", "--file", `${file}x`), "cannot be read")
    })
  )

  it.effect("`send` takes no secret that is none, and does not show it", () =>
    Effect.gen(function* () {
      const wrong = yield* run(..."send --organization org_harbor --invoice i --secret whsec_s3cr*t".split(" "))
      assert.strictEqual(wrong.code, 2)
      assert.notInclude(wrong.stderr, "s3cr")
    })
  )
})
