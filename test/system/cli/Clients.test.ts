/**
 * `sync` as users run it, over the running service.
 *
 * @module-tag long
 */
import { readdirSync, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { processWith, start } from "../../support/cli.ts"
import { eventually } from "../../support/eventually.ts"
import { temporaryFolder } from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"

it.live.each([
  ["SIGINT", 130],
  ["SIGTERM", 143]
] as const)("a copy in SQLite is its user's alone and has no key, and %s ends a sync with %i", ([signal, code]) =>
  Effect.gen(function* () {
    const { url } = yield* Program.startUsed({})
    const environment = { PRACTICE_DATA_URL: url, PRACTICE_DATA_API_KEY: "pda_demo_oakridge" }
    const folder = yield* temporaryFolder
    const sync = ["sync", `sqlite:${join(folder, "copy.db")}`]
    // The files beside a SQLite file are gone when the command ends.
    const command = yield* start(environment, [...sync, "--watch", "60"])
    yield* eventually("the copy", () => command.stdout().includes('"in_step"'))
    const made = readdirSync(folder)
    assert.isAbove(made.length, 3)
    for (const name of made) {
      assert.strictEqual(statSync(join(folder, name)).mode & 0o777, 0o600, name)
      assert.notInclude(readFileSync(join(folder, name), "latin1"), "pda_demo_oakridge")
    }
    yield* command.kill(signal)
    assert.strictEqual((yield* command.ended).code, code)
    const second = yield* processWith(environment, sync)
    assert.strictEqual(second.code, 0, second.stderr)
    assert.match(second.stdout, /"event":"in_step","seconds":[\d.]+,"records":0,"removed":0,"reset":0\}\n$/)
    assert.notInclude(command.output() + second.stdout + second.stderr, "pda_demo_oakridge")
  })
)
