/** How the service is started elsewhere, held against the clone and against published types. Real builds: `test/system/container`. */
import { spawnSync } from "node:child_process"
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { parseAllDocuments } from "yaml"
import { long } from "../../support/tries.ts"
import product from "../../../package.json" with { type: "json" }

const root = join(import.meta.dirname, "../../..")
const read = (file: string) => readFileSync(join(root, "scripts/container", file), "utf8")

it("the Dockerfile has the Node of the tests, and starts it as npm start does", () => {
  const dockerfile = read("Dockerfile")
  const image = `node:${product.devDependencies.node}-trixie-slim`
  assert.deepStrictEqual(dockerfile.match(/^FROM \S+/gm), [`FROM ${image}`, `FROM ${image}`])
  const started = (/ exec (node .*)$/.exec(product.scripts.start)?.[1] ?? "").split(" ")
  assert.include(dockerfile, `\nCMD ${JSON.stringify(started).replaceAll(",", ", ")}\n`)
  assert.include(read("practice-data@.service"), `env PORT=300%i OPERATIONS_PORT=946%i ${started.join(" ")}\n`)
})

const groups = { Deployment: "apps/v1", Job: "batch/v1", Service: "core/v1" } as const

it("the Kubernetes manifest has the types of its API, and no other fields", long, ({ onTestFinished }) => {
  const folder = mkdtempSync(join(root, "node_modules/.kubernetes-"))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  const lines = parseAllDocuments(read("kubernetes.yaml")).map(
    (document, at) => `export const object${at}: ${String(document.get("kind"))} = ${JSON.stringify(document)}`
  )
  const imports = Object.entries(groups).map(
    ([kind, group]) => `import type { ${kind} } from "kubernetes-types/${group}.js"`
  )
  writeFileSync(join(folder, "manifest.ts"), [...imports, ...lines].join("\n"))
  const options = ["--ignoreConfig", "--noEmit", "--strict", "--module", "nodenext", "--types", ""]
  const tsc = spawnSync("node_modules/.bin/tsc", [...options, join(folder, "manifest.ts")], {
    cwd: root,
    encoding: "utf8"
  })
  assert.strictEqual(tsc.stdout, "")
  assert.strictEqual(tsc.status, 0)
})
