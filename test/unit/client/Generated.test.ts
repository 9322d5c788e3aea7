/** The committed source of the client's types is what the OpenAPI documents make of it now. */
import { readFileSync } from "node:fs"
import { assert, it } from "@effect/vitest"
import { data, source } from "../../../scripts/client/source.ts"
import { resources } from "../../../src/client/index.ts"

const generated = Object.entries(source()).map(([name, text]) => [`client/generated/${name}`, text] as const)

it.each(generated)("src/%s is up to date", (path, text) => {
  const committed = readFileSync(new URL(`../../../src/${path}`, import.meta.url), "utf8")
  assert.isTrue(committed === text, `src/${path} is stale: run \`npm run generate\``)
})

it("the client has every endpoint of the document", () => {
  const endpoints = resources.flatMap(({ name, verbs }) => verbs.map((verb) => `/${name}/${verb}`))
  assert.sameMembers(["/changes", ...endpoints], Object.keys(data.paths))
})
