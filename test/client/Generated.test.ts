/** The committed source of the client's types is what the OpenAPI documents make of it now. */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { data, source } from "../../scripts/client/source.ts"
import { resources } from "../../src/client/index.ts"

it("src/client/generated.ts is up to date", () => {
  const committed = readFileSync(new URL("../../src/client/generated.ts", import.meta.url), "utf8")
  assert.isTrue(committed === source(), "src/client/generated.ts is stale: run `npm run generate`")
})

it("the client has every endpoint of the document", () => {
  assert.sameMembers(
    resources.flatMap(({ name, verbs }) => verbs.map((verb) => `/${name}/${verb}`)),
    Object.keys(data.paths)
  )
})
