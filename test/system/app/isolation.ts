/** No answer to one organization holds a byte of another's. */
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { endpoints, searchable } from "../../support/contract/Contract.ts"
import { json, type Organization } from "../../support/Client.ts"
import { all, everything, valueOf } from "../../support/Records.ts"
import { Service, type Tests } from "../../support/Service.ts"

const other = { oakridge: "harbor", harbor: "oakridge" } as const

const cases = searchable.flatMap((resource) =>
  (["oakridge", "harbor"] as const).map((organization: Organization) => ({
    resource,
    path: resource.name,
    organization
  }))
)

const isWithout = (slug: string, { headers, text }: { readonly headers: object; readonly text: string }) =>
  assert.notInclude(`${json(headers)}${text}`.toLowerCase(), slug)

export const isolation = (it: Tests) => {
  it.effect.each(cases)(
    "/$path by every filter, with values of both organizations, shows $organization its own alone",
    (own) =>
      Effect.gen(function* () {
        const client = yield* Service
        const { resource, organization } = own
        const stranger = other[organization]
        const [mine] = yield* all(client, resource, organization)
        const [theirs] = yield* all(client, resource, stranger)
        assert.isDefined(mine)
        assert.isDefined(theirs)
        const path = `/${resource.name}/search`
        isWithout(stranger, yield* client.ask(path, everything(resource), organization))
        for (const [name, filter] of Object.entries(resource.filters)) {
          const values =
            filter.compares === "includes"
              ? [true, false]
              : filter.fields.length === 0
                ? [`pet_${organization}_0001`, `pet_${stranger}_0001`]
                : [mine, theirs].map((record) => record && valueOf(filter, record))
          for (const value of values) {
            const answer = yield* client.ask(path, { ...everything(resource), [name]: value }, organization)
            assert.strictEqual(answer.status, 200)
            isWithout(stranger, answer)
          }
        }
      })
  )

  it.effect.each(cases)("/$path/get answers 404 to $organization for another's id just as for an unknown one", (own) =>
    Effect.gen(function* () {
      const client = yield* Service
      const { resource, organization } = own
      const path = `/${resource.name}/get`
      const records = yield* all(client, resource, other[organization])
      const unknown = yield* client.ask(path, { id: "no-such-id" }, organization)
      assert.strictEqual(unknown.status, 404)
      for (const { id } of records.filter((_, index) => index % 25 === 0)) {
        const answer = yield* client.ask(path, { id }, organization)
        assert.deepStrictEqual([answer.status, answer.text], [404, unknown.text])
        const { "x-request-id": _, date: __, ...headers } = answer.headers
        const { "x-request-id": ___, date: ____, ...expected } = unknown.headers
        assert.deepStrictEqual(headers, expected)
      }
    })
  )

  it.effect.each(endpoints)("$path says nothing of another organization that a request names", ({ path, required }) =>
    Effect.gen(function* () {
      const client = yield* Service
      const theirs = { id: "charge_harbor_0001", clinic: "clinic_harbor_01" } as const
      const id = Object.fromEntries(Object.entries(theirs).filter(([name]) => required.includes(name)))
      for (const body of [
        { ...id, organization: "org_harbor" },
        { ...id, organization: "org_harbor", no_such_field: "org_harbor" },
        { ...id, organization: 5 }
      ]) {
        isWithout("harbor", yield* client.ask(path, body))
      }
    })
  )
}
