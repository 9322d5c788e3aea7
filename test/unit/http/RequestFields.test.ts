/** The fields of a request beside limit and offset: organization, id, and filters of each type. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { IdRequired, OrgMismatch, RecordNotFound } from "../../../src/api/Errors.ts"
import { faults } from "../../../src/api/Faults.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { demo, InProcess, organization, other, paths, send, taskPaths } from "../../http/inProcess.ts"

const get = "/api/v3/charges/get"
const ownId = demo.charges[0]?.id
const fault = (field: string, kind: { readonly type: string; readonly msg: string }) => ({
  detail: [{ loc: ["body", field], ...kind }]
})

const kindOf = (filter: string) =>
  filter.startsWith("include_") ? faults.boolean : /_(since|before)$/.test(filter) ? faults.datetime : faults.string

const raws = (...values: ReadonlyArray<string>) => values

layer(InProcess.layer())("organization", (it) => {
  it.effect.each([...paths, ...taskPaths])("may be absent, null or the key's own on %s, to the same effect", (path) =>
    Effect.gen(function* () {
      const name = path.includes("/invoice-deletions/") ? "task_id" : "id"
      const id = path.endsWith("/get") && !path.includes("/organization/") ? { [name]: "none" } : {}
      const absent = yield* send({ path, json: id })
      assert.include([200, 404], absent.status)
      for (const given of [null, organization]) {
        const answer = yield* send({ path, json: { ...id, organization: given } })
        assert.deepStrictEqual([answer.status, answer.text], [absent.status, absent.text])
      }
    })
  )

  it.effect.each([...paths, ...taskPaths])(
    "is refused with 400 on %s when it is another's, blank or not quite the key's",
    (path) =>
      Effect.gen(function* () {
        for (const given of [other.organization, "none", "", " ", `${organization} `, organization.toUpperCase()]) {
          const answer = yield* send({ path, json: { organization: given } })
          assert.strictEqual(answer.status, 400)
          assert.deepStrictEqual(answer.json, { detail: new OrgMismatch().detail })
        }
      })
  )

  it.effect.each(raws("1", "true", "[]", "{}"))("is refused with 422 when it is no string: %s", (raw) =>
    Effect.gen(function* () {
      const answer = yield* send({ raw: `{"organization":${raw}}` })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(answer.json, fault("organization", faults.string))
    })
  )
})

layer(InProcess.layer())("the id of a single-record read", (it) => {
  const gets = paths.filter((path) => path.endsWith("/get") && !path.includes("/organization/"))

  it.effect.each(gets)("is required: %s without one, or with a blank one, is 400", (path) =>
    Effect.gen(function* () {
      for (const json of [{}, { id: null }, { id: "" }, { id: "  " }, { id: "\t\r\n" }, { id: "\u00a0\u2003" }]) {
        const answer = yield* send({ path, json })
        assert.strictEqual(answer.status, 400)
        assert.deepStrictEqual(answer.json, { detail: new IdRequired().detail })
      }
    })
  )

  it.effect.each(raws("1", "true", "[]", `{"$ne":""}`))("is refused with 422 when it is no string: %s", (raw) =>
    Effect.gen(function* () {
      const answer = yield* send({ path: get, raw: `{"id":${raw}}` })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(answer.json, fault("id", faults.string))
    })
  )

  it.effect("finds the record itself", () =>
    Effect.gen(function* () {
      const answer = yield* send({ path: get, json: { id: ownId } })
      assert.strictEqual(answer.status, 200)
      assert.deepInclude(answer.json, { id: ownId })
    })
  )

  it.effect("is 404 and the same text whether no organization has it or another one does", () =>
    Effect.gen(function* () {
      for (const id of ["none", other.demo.charges[0]?.id, ownId?.toUpperCase(), ` ${ownId}`]) {
        const answer = yield* send({ path: get, json: { id } })
        assert.strictEqual(answer.status, 404)
        assert.deepStrictEqual(answer.json, { detail: new RecordNotFound().detail })
      }
    })
  )
})

layer(InProcess.layer())("a filter", (it) => {
  it.effect.each(searchable)("that is null is as if absent: every one of $name", ({ name, filters }) =>
    Effect.gen(function* () {
      const path = `/api/v3/${name}/search`
      const nulls = Object.fromEntries(Object.keys(filters).map((filter) => [filter, null]))
      assert.isNotEmpty(nulls)
      const answer = yield* send({ path, json: nulls })
      assert.strictEqual(answer.status, 200)
      assert.strictEqual(answer.text, (yield* send({ path })).text)
    })
  )

  it.effect.each(searchable)("of another type is refused with 422: every one of $name", ({ name, filters }) =>
    Effect.gen(function* () {
      const names = Object.keys(filters)
      const json = Object.fromEntries(names.map((filter) => [filter, 1]))
      const answer = yield* send({ path: `/api/v3/${name}/search`, json })
      assert.strictEqual(answer.status, 422)
      assert.deepStrictEqual(answer.json, {
        detail: names.map((filter) => ({ loc: ["body", filter], ...kindOf(filter) }))
      })
    })
  )

  it.effect.each(raws("1", "0", `"true"`, `"false"`, `""`, "[]", "{}", "1.0"))(
    "that is a boolean is refused with 422 when it is not written true or false: %s",
    (raw) =>
      Effect.gen(function* () {
        const answer = yield* send({ path: "/api/v3/consumption-logs/search", raw: `{"include_deleted":${raw}}` })
        assert.strictEqual(answer.status, 422)
        assert.deepStrictEqual(answer.json, fault("include_deleted", faults.boolean))
      })
  )

  it.effect("that the endpoint does not have is refused with 422, lest a mistyped one widen the result", () =>
    Effect.gen(function* () {
      for (const path of paths)
        for (const field of ["Limit", "clinic_idd", "updated_since", ""]) {
          const answer = yield* send({ path, json: { [field]: "x" } })
          assert.strictEqual(answer.status, 422)
          assert.deepStrictEqual(answer.json, fault(field, faults.extra))
        }
    })
  )

  it.effect.each([
    [get, "limit"],
    [get, "offset"],
    [get, "status"],
    ["/api/v3/organization/get", "id"],
    ["/api/v3/clinics/search", "created_at_since"],
    ["/api/v3/products/search", "updated_at_since"],
    ["/api/v3/charges/search", "include_deleted"]
  ] as const)("of another endpoint is refused with 422: %s has no %s", ([path, field]) =>
    Effect.gen(function* () {
      assert.deepStrictEqual((yield* send({ path, json: { [field]: null } })).json, fault(field, faults.extra))
    })
  )
})

layer(InProcess.layer())("a string", (it) => {
  const unstorable = [
    ["U+0000 alone", String.raw`"\u0000"`],
    ["U+0000 within", String.raw`"charge\u0000_1"`],
    ["a high surrogate alone", String.raw`"\ud83d"`],
    ["a high surrogate before a letter", String.raw`"\ud83dx"`],
    ["a low surrogate alone", String.raw`"x\ude00"`],
    ["a pair in the wrong order", String.raw`"\ude00\ud83d"`]
  ] as const

  it.effect.each(unstorable)("that no database can hold is refused with 422: %s", ([, raw]) =>
    Effect.gen(function* () {
      for (const field of ["organization", "id", "clinic", "status", "invoice_pims_id"]) {
        const answer = yield* send({ raw: `{"${field}":${raw}}` })
        assert.strictEqual(answer.status, 422)
        assert.deepStrictEqual(answer.json, fault(field, faults.stringUnicode))
      }
      assert.deepStrictEqual((yield* send({ path: get, raw: `{"id":${raw}}` })).json, fault("id", faults.stringUnicode))
    })
  )

  it.effect("in which surrogates are paired, or that has control characters, is fine", () =>
    Effect.gen(function* () {
      for (const raw of [String.raw`"\ud83d\ude00"`, `"😀"`, String.raw`"\u0001\u007f\ufffe\uffff"`]) {
        const answer = yield* send({ raw: `{"status":${raw}}` })
        assert.strictEqual(answer.text, `{"body":[]}`)
      }
    })
  )
})
