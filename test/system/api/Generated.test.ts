/**
 * The OpenAPI documents in the tools of others: linters find nothing, and clients that well-known generators make of them
 * compile strictly and do a sync against the started service; in 3.0, types by a generator that reads no later version. The tools are a package of their own, which is
 * installed from the registry.
 *
 * @module-tag long
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect, Record, Schema } from "effect"
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../src/api/DataApi.ts"
import { VersionOneApi } from "../../../src/api/IntakeApi.ts"
import { downgrade } from "../../../src/api/openapi/JsonSchemas.ts"
import { organizations, recordsOf } from "../../../src/app/demo/DemoData.ts"
import { root } from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import { succeed } from "../../support/run.ts"

const folder = join(root, "scripts/openapi")
const generated = join(folder, "generated")

/** Runs a program in the folder of the tools. Returns what it writes. */
const run = (program: string, ...args: ReadonlyArray<string>) =>
  Effect.map(succeed(program, args, { cwd: folder, env: process.env }), ({ stdout }) => stdout)

/** Runs a tool, or a program that was compiled, with the Node of the tests. */
const node = (program: string, ...args: ReadonlyArray<string>) => run(process.execPath, program, ...args)
const tool = (name: string, ...args: ReadonlyArray<string>) => node(join("node_modules/.bin", name), ...args)

const documents = { v1: OpenApi.fromApi(VersionOneApi), v3: OpenApi.fromApi(DataApi) }
const documents30 = Record.map(documents, downgrade)

const prepare = Effect.gen(function* () {
  yield* run("npm", "ci", "--ignore-scripts", "--prefer-offline", "--no-audit", "--no-fund")
  rmSync(generated, { recursive: true, force: true })
  mkdirSync(generated)
  const encode = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown))
  for (const [version, content] of Object.entries(documents)) {
    const document = `./generated/${version}.json`
    writeFileSync(join(folder, document), yield* encode(content))
    // Two versions have a program of this name.
    yield* node(
      "node_modules/openapi-typescript/bin/cli.js",
      document,
      "-o",
      `generated/openapi-typescript/${version}.d.ts`
    )
    yield* tool("openapi-ts", "-i", document, "-o", `generated/hey-api/${version}`, "-c", "@hey-api/client-fetch")
  }
  for (const [version, content] of Object.entries(documents30)) {
    const document = `./generated/${version}-3.0.json`
    writeFileSync(join(folder, document), yield* encode(content))
    const types = `generated/openapi-typescript-3.0/${version}.d.ts`
    yield* node("node_modules/openapi-typescript-3.0/bin/cli.js", document, "--output", types)
  }
})

const [oakridge] = organizations
const demo = recordsOf(oakridge)
const counts = { invoices: demo.invoices.length, charges: demo.charges.length }

const readCounts = Schema.decodeEffect(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Int)))

describe("The OpenAPI documents", () => {
  beforeAll(() => Effect.runPromise(prepare), 300_000)

  it.live("have nothing that Redocly's recommended rules would warn of", () =>
    Effect.gen(function* () {
      const found = yield* tool("redocly", "lint", "--config", "lint.redocly.yaml", "--format", "json")
      assert.deepStrictEqual(
        [...found.matchAll(/"(?:errors|warnings|ignored)": (\d+)/g)].map(([, count]) => count),
        ["0", "0", "0", "0", "0", "0"],
        found
      )
    })
  )

  it.live("have nothing that any rule of Spectral would hint at", () => {
    const options = ["--ruleset", "lint.spectral.yaml", "--fail-severity", "hint"]
    return tool(
      "spectral",
      "lint",
      ...options,
      ...["v1", "v3", "v1-3.0", "v3-3.0"].map((name) => `generated/${name}.json`)
    )
  })

  it.live("make clients that compile strictly, and keep copies of resources", () =>
    Effect.gen(function* () {
      // The compiler of the project takes a third of the time.
      yield* node(join(root, "node_modules/typescript/bin/tsc"), "-p", ".")
      const { url } = yield* Program.startUsed({})
      for (const program of ["openapiFetch", "heyApi"]) {
        const compiled = `generated/compiled/clients/${program}.js`
        const copied = yield* readCounts(yield* node(compiled, url, oakridge.key))
        assert.deepStrictEqual(copied, counts, program)
      }
    })
  )
})
