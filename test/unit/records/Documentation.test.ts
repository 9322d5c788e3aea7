/** The table of the data API's documentation: which resource has which time, filter and deleted records. */
import { assert, it } from "@effect/vitest"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { searchable } from "../../support/contract/Contract.ts"

const { description = "" } = OpenApi.fromApi(DataApi).info

const namesIn = (cell = "") => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name)

const documented = description
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, names]) => names !== "resource" && names !== "---")
  .flatMap(([, names = "", time, since, deleted]) =>
    names.split(", ").map((name) => ({
      name,
      time: namesIn(time)[0],
      since: namesIn(since)[0],
      hasDeleted: namesIn(deleted).includes("include_deleted")
    }))
  )

it("The table of the documentation has every resource that can be searched, as search alone reads it", () => {
  assert.sameMembers(
    documented.map(({ name }) => name),
    searchable.map(({ name }) => name)
  )
  for (const { hasDeleted, name, since, time } of documented) {
    const { fields, filters, orderedBy } = searchable.find((resource) => resource.name === name) ?? assert.fail(name)
    assert.strictEqual(time, orderedBy in fields ? orderedBy : undefined)
    assert.strictEqual(hasDeleted, "include_deleted" in filters)
    if (time === undefined) assert.isUndefined(since)
    else assert.deepInclude(filters[since ?? ""], { compares: "since", fields: [time] })
  }
})
