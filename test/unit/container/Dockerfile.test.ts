/** The facts of the Dockerfile and the compose file that the clone decides. No image is built here. */
import { execFileSync } from "node:child_process"
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import product from "../../../package.json" with { type: "json" }

const root = join(import.meta.dirname, "../../..")
const read = (path: string) => readFileSync(join(root, path), "utf8")

const dockerfile = read("scripts/container/Dockerfile").replaceAll(/^#.*\n|\\\n\s*/gm, "")

/** The values of an instruction, in their order. */
const valuesOf = (instruction: string) =>
  [...dockerfile.matchAll(new RegExp(`^${instruction} (.+)$`, "gm"))].map(([, value = ""]) => value)

describe("the Dockerfile", () => {
  it("has the Node of the tests in both stages", () => {
    const image = `node:${product.devDependencies.node}-trixie-slim`
    assert.deepStrictEqual(valuesOf("FROM"), [`${image} AS dependencies`, image])
  })

  it("copies what .dockerignore lets through, and all of it", () => {
    const [first, ...allowed] = read(".dockerignore")
      .replaceAll(/^#.*\n/gm, "")
      .trim()
      .split("\n")
    const copied = valuesOf("COPY").flatMap((value) =>
      value.startsWith("--from") ? [] : value.split(" ").slice(0, -1)
    )
    assert.strictEqual(first, "*")
    assert.sameMembers(
      allowed.map((line) => line.replace(/^!/, "")),
      [...new Set(copied)]
    )
    for (const path of copied) assert.isTrue(existsSync(join(root, path)), path)
  })

  it("installs no dev dependencies, and runs as a user that owns nothing but the volume", () => {
    assert.include(valuesOf("RUN"), "npm ci --omit=dev")
    assert.deepStrictEqual(valuesOf("USER"), ["1000:1000"])
    assert.include(valuesOf("RUN"), "install -d -o 1000 -g 1000 /data")
    assert.deepStrictEqual(valuesOf("VOLUME"), ["/data"])
    assert.include(valuesOf("ENV").join(" "), "DATA_DIR=/data HOST=0.0.0.0")
  })

  it("starts Node itself, as npm start does, and asks for its readiness", () => {
    const options = execFileSync(process.execPath, [join(root, "src/requireNode.cjs")], { encoding: "utf8" })
    const started = options
      .trim()
      .replace(/size=\d+$/, "size-percentage=40")
      .split(" ")
    assert.deepStrictEqual(JSON.parse(valuesOf("CMD").join()), ["node", ...started, "src/main.ts"])
    assert.match(valuesOf("HEALTHCHECK").join(), /CMD \["node", "-e", "fetch\(.+\/api\/v1\/health\/ready/)
  })

  it("has the command with which compose migrates", () => {
    const commands = [...read("scripts/container/compose.yaml").matchAll(/^ {4}command: (.+)$/gm)].map(
      ([, json]) => json
    )
    assert.deepStrictEqual(commands, ['["node", "src/cli.ts", "migrate"]'])
    assert.isTrue(existsSync(join(root, "src/cli.ts")))
  })
})
