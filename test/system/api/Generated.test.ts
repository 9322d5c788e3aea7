/**
 * What others make of the OpenAPI documents: linters find nothing, and clients that well-known generators make of them
 * compile strictly and do a sync against the started service. The tools are a package of their own, which is
 * installed from the registry.
 *
 * @module-tag long
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { VersionOneApi } from "../../../src/api/IntakeApi.ts"
import { organizations, recordsOf } from "../../../src/demo/DemoData.ts"
import * as Program from "../../support/Program.ts"
import { succeed } from "../../support/run.ts"

const folder = join(import.meta.dirname, "../../../scripts/openapi")
const generated = join(folder, "generated")

/** Runs a program in the folder of the tools. Returns what it writes. */
const run = (program: string, ...args: ReadonlyArray<string>) =>
  Effect.map(succeed(program, args, { cwd: folder, env: process.env }), ({ stdout }) => stdout)

/** Runs a tool, or a program that was compiled, with the Node of the tests. */
const node = (program: string, ...args: ReadonlyArray<string>) => run(process.execPath, program, ...args)
const tool = (name: string, ...args: ReadonlyArray<string>) => node(join("node_modules/.bin", name), ...args)

const documents = { v1: VersionOneApi, v3: DataApi }

const prepare = Effect.gen(function* () {
  yield* run("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
  rmSync(generated, { recursive: true, force: true })
  mkdirSync(generated)
  const encode = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))
  writeFileSync(join(generated, "v1.json"), yield* encode(OpenApi.fromApi(VersionOneApi)))
  writeFileSync(join(generated, "v3.json"), yield* encode(OpenApi.fromApi(DataApi)))
  for (const version of Object.keys(documents)) {
    const document = `./generated/${version}.json`
    yield* tool("openapi-typescript", document, "-o", `generated/openapi-typescript/${version}.d.ts`)
    yield* tool("openapi-ts", "-i", document, "-o", `generated/hey-api/${version}`, "-c", "@hey-api/client-fetch")
  }
})

class Service extends Context.Service<Service, string>()("practice-data/test/openapi/Generated/Service") {
  static readonly layer = Layer.effect(
    Service,
    Effect.map(Program.startUsed({}), ({ url }) => url)
  )
}

const [oakridge] = organizations
const demo = recordsOf(oakridge)
const counts = { invoices: demo.invoices.length, charges: demo.charges.length }

const readCounts = Schema.decodeEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Int)))

layer(Service.layer, { excludeTestServices: true, timeout: "2 minutes" })("The OpenAPI documents", (it) => {
  beforeAll(() => Effect.runPromise(prepare))

  it.effect("have nothing that Redocly's recommended rules would warn of", () =>
    Effect.gen(function* () {
      const found = yield* tool("redocly", "lint", "--config", "lint.redocly.yaml", "--format", "json")
      assert.deepStrictEqual(
        [...found.matchAll(/"(?:errors|warnings|ignored)": (\d+)/g)].map(([, count]) => count),
        ["0", "0", "0", "0", "0", "0"],
        found
      )
    })
  )

  it.effect("have nothing that any rule of Spectral would hint at", () =>
    tool(
      "spectral",
      "lint",
      "--ruleset",
      "lint.spectral.yaml",
      "--fail-severity",
      "hint",
      "generated/v1.json",
      "generated/v3.json"
    )
  )

  it.effect("make clients that compile strictly, and keep copies of resources, with and without deleted records", () =>
    Effect.gen(function* () {
      yield* tool("tsc", "-p", ".")
      for (const program of ["openapiFetch", "heyApi"]) {
        const compiled = `generated/compiled/clients/${program}.js`
        const copied = yield* readCounts(yield* node(compiled, yield* Service, oakridge.key))
        assert.deepStrictEqual(copied, counts, program)
      }
    })
  )
})
