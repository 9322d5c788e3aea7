/** The committed source of the client's types is what the OpenAPI documents make of it now. */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { data, source } from "../../../scripts/client/source.ts"
import { resources } from "../../../src/client/index.ts"

it.each(Object.entries(source()))("src/client/generated/%s is up to date", (name, text) => {
  const committed = readFileSync(new URL(`../../../src/client/generated/${name}`, import.meta.url), "utf8")
  assert.isTrue(committed === text, `src/client/generated/${name} is stale: run \`npm run generate\``)
})

it("the client has every endpoint of the document", () => {
  assert.sameMembers(
    ["/changes", ...resources.flatMap(({ name, verbs }) => verbs.map((verb) => `/${name}/${verb}`))],
    Object.keys(data.paths)
  )
})
