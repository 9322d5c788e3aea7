/** The parameters of the operators' pages: one that is not understood is refused, so that it widens no list and no change. */
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { link } from "../../../src/http/Html.ts"
import { ask, factOf, figures, listener, processOf, store, taskOf, token } from "./fakes.ts"

const dead = taskOf("org_oakridge", "delivery-1", "dead", 0)
const completed = taskOf("org_harbor", "delivery-2", "completed", 0)

const pages = listener(
  Layer.merge(
    figures(Effect.succeed(processOf(0))),
    store({ tasks: [dead, completed], facts: [factOf(completed, "deleted", 0)], keys: [], audit: [] })
  )
)

const replay = "/ops/deletions/replay"

const undo = (record: Readonly<Record<string, string>>) =>
  link("/ops/task/undo", { organization: "org_harbor", id: completed.id, ...record })

describe("a parameter that is not understood", () => {
  it.effect.each([
    ["an unknown value", "/ops/deletions?state=nonsense"],
    ["an unknown name", "/ops/deletions?organisation=org_harbor"],
    ["U+0000", "/ops/task?organization=%00&id=1"],
    ["two values", "/ops/keys?organization=org_a&organization=org_b"],
    ["a long text", `/ops/audit?target=${"x".repeat(2001)}`]
  ] as const)("shows no rows: %s", ([, path]) =>
    Effect.gen(function* () {
      const { status, text } = yield* ask(path)
      assert.strictEqual(status, 422)
      // Nor does the page reload itself.
      assert.notMatch(text, /<table|live\.js/)
    }).pipe(Effect.provide(pages))
  )

  it.effect.each<readonly [string, string, Readonly<Record<string, string>>]>([
    ["an unknown name", `${replay}?organisation=org_harbor`, {}],
    ["U+0000", `${replay}?organization=%00`, {}],
    ["a long text", `${replay}?reason=${"x".repeat(2001)}`, {}],
    ["two values", `${replay}?reason=total&reason=other`, {}],
    ["an unknown field", replay, { Reason: "other" }],
    ["a long form", replay, { organization: "x".repeat(20_000) }],
    ["an unknown kind", undo({ kind: "invoices", record: "invoice_1" }), {}],
    ["no kind", undo({ record: "invoice_1" }), {}],
    ["no record", undo({ kind: "line" }), {}]
  ])("changes nothing: %s", ([, path, fields]) =>
    Effect.gen(function* () {
      assert.strictEqual((yield* ask(path, { form: { name: "alice", token, ...fields } })).status, 422)
      assert.include((yield* ask(replay)).text, "<strong>1</strong> dead deletion matches")
      assert.include((yield* ask(undo({}))).text, "Undoes the deletion of 1 item.")
    }).pipe(Effect.provide(pages))
  )
})
