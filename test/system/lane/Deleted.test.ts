/**
 * The service without the folder of the lane: it compiles, and serves the same.
 *
 * @module-tag long
 */
import { spawnSync } from "node:child_process"
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { root } from "../../support/Process.ts"

/** A copy of the sources without the lane, its tests, and its line in the app. */
const withoutLane = Effect.acquireRelease(
  Effect.sync(() => {
    const copy = mkdtempSync(join(tmpdir(), "practice-data-lane-"))
    cpSync(root, copy, { recursive: true, filter: (path) => !/\/(node_modules|\.git|\.data|dist)(\/|$)/.test(path) })
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))
    for (const folder of globSync(["src/lane", "test/*/lane"], { cwd: copy }))
      rmSync(join(copy, folder), { recursive: true })
    const app = join(copy, "src/app/App.ts")
    const source = readFileSync(app, "utf8")
    const left = source
      .replace(/^import \* as Lane .*\n/m, "")
      .replace(/settings\.lane [^:]*: Layer\.empty/, "Layer.empty")
    assert.notInclude(left, "Lane.")
    writeFileSync(app, left)
    return copy
  }),
  (copy) => Effect.sync(() => rmSync(copy, { recursive: true }))
)

const run = (copy: string, ...command: ReadonlyArray<string>) =>
  Effect.sync(() => {
    const { status, stderr, stdout } = spawnSync("npm", ["run", "--silent", ...command], {
      cwd: copy,
      encoding: "utf8"
    })
    assert.strictEqual(status, 0, `${stdout}\n${stderr}`)
  })

it.live("without the folder of the lane, the service compiles and serves the same", () =>
  Effect.gen(function* () {
    const copy = yield* withoutLane
    yield* run(copy, "types")
    yield* run(copy, "test", "--", "test/unit/api", "test/integration/http", "test/integration/records")
  }).pipe(Effect.scoped)
)
