/** The rules that every endpoint of a kind obeys, over the fakes: each rule once, for all endpoints. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { faults } from "../../../src/api/Faults.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { type Endpoint, endpoints } from "../../contract/Contract.ts"
import { expectAnswer, InProcess, invalid, organization, send } from "../../support/inProcess.ts"

const has = (...names: ReadonlyArray<string>) =>
  endpoints.filter(({ request }) => names.every((name) => name in request))

/** Each endpoint's status and body for a request: the least one, changed. */
const each = (all: ReadonlyArray<Endpoint>, change: object) =>
  Effect.forEach(all, ({ least, path }) =>
    Effect.map(
      send({ path: `/api/v3${path}`, json: { ...least, ...change } }),
      ({ json, status }) => [path, status, json] as const
    )
  )

const refuses = Effect.fnUntraced(function* (
  all: ReadonlyArray<Endpoint>,
  change: object,
  detail: unknown,
  code = 400
) {
  assert.isNotEmpty(all)
  const refused = all.map(({ path }) => [path, code, { detail }] as const)
  assert.deepStrictEqual(yield* each(all, change), refused)
})

/** The endpoints serve the request: whatever it names is not found, or found. */
const serves = Effect.fnUntraced(function* (all: ReadonlyArray<Endpoint>, change: object) {
  assert.isNotEmpty(all)
  for (const [path, status] of yield* each(all, change)) {
    const known = path.endsWith("/get") && path !== "/organization/get" ? 404 : 200
    assert.strictEqual(status, known, path)
  }
})

const offsets = has("limit", "offset")
const changes = has("limit", "wait")
const gets = has("id").filter(({ kind }) => kind === "get")

layer(InProcess.layer())("every endpoint", (it) => {
  it.effect("of a search takes a limit from 1 to 1000, and an offset from 0 to 2147483647", () =>
    Effect.gen(function* () {
      for (const limit of [0, 1001]) yield* refuses(offsets, { limit }, "limit must be between 1 and 1000")
      for (const offset of [-1, 2147483648])
        yield* refuses(offsets, { offset }, "offset must be between 0 and 2147483647")
      yield* serves(offsets, { limit: 1000, offset: 2147483647 })
      yield* serves(offsets, { limit: 1, offset: 0 })
    })
  )

  it.effect("of changes takes a limit from 1 to 1000, by default 1000, and a wait from 0 to 20 seconds", () =>
    Effect.gen(function* () {
      for (const limit of [0, 1001]) yield* refuses(changes, { limit }, "limit must be between 1 and 1000")
      for (const wait of [-1, 21]) yield* refuses(changes, { wait }, "wait must be between 0 and 20")
      yield* serves(changes, { limit: 1000, wait: 20 })
      assert.deepStrictEqual(yield* each(changes, {}), yield* each(changes, { limit: 1000 }))
    })
  )

  it.effect("of all changes refuses an unknown resource, and an empty list of them", () =>
    Effect.gen(function* () {
      const names = searchable.map(({ name }) => name).join(", ")
      for (const [resources, loc, type, msg] of [
        [["pets", "dogs"], ["resources", 1], "literal_error", `Input should be one of: ${names}`],
        [[], ["resources"], "too_short", "List should have at least 1 item after validation, not 0"]
      ] as const) {
        const detail = [{ loc: ["body", ...loc], msg, type }]
        yield* expectAnswer({ path: "/api/v3/changes", json: { resources } }, 422, { detail })
      }
    })
  )

  it.effect("refuses any organization other than the key's, and serves the key's own", () =>
    Effect.gen(function* () {
      const detail = "organization does not match the organization of the API key"
      yield* refuses(endpoints, { organization: "org_harbor" }, detail)
      for (const another of ["org_nobody", "", "ORG_OAKRIDGE", `${organization} `])
        yield* refuses(endpoints.slice(0, 1), { organization: another }, detail)
      yield* serves(endpoints, { organization })
    })
  )

  it.effect("refuses a field that is mistyped, lest it widen the result", () =>
    refuses(endpoints, { Limit: 1 }, invalid(["Limit", faults.extra]).detail, 422)
  )

  it.effect("takes an optional field that is null as absent", () =>
    Effect.gen(function* () {
      for (const endpoint of endpoints) {
        const optional = Object.keys(endpoint.request).filter((name) => !(name in endpoint.least))
        const nulls = Object.fromEntries(optional.map((name) => [name, null]))
        assert.deepStrictEqual(yield* each([endpoint], nulls), yield* each([endpoint], {}))
      }
    })
  )

  it.effect("of a record requires an id that is not blank, and is 404 if there is none", () =>
    Effect.gen(function* () {
      yield* refuses(gets, { id: " " }, "id is required and cannot be blank")
      for (const id of [undefined, null, "", "\t\n"])
        yield* refuses(gets.slice(0, 1), { id }, "id is required and cannot be blank")
      yield* refuses(gets, { id: "none" }, "No such record", 404)
    })
  )
})
