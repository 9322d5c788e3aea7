/**
 * The package, packed and installed into projects of others.
 *
 * @module-tag long
 */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Client from "../blackbox/support/Client.ts"
import { startCommand } from "../blackbox/support/Process.ts"
import { TestDatabase } from "../support/TestDatabase.ts"
import { node24, Project } from "./Project.ts"
import { npm, run, succeed } from "./run.ts"

const binOf = (project: string) => join(project, "node_modules/practice-data/dist/cli.js")

/** Starts the installed service. */
const serve = (environment: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { bare } = yield* Project
    const program = yield* startCommand(
      { file: node24, args: [join(bare, "node_modules/practice-data/dist/main.js")], cwd: bare },
      environment
    )
    return { ...program, url: yield* program.address }
  })

const compilers = ["typescript5", "typescript7"].flatMap((compiler) =>
  (["nodenext", "bundler"] as const).map((resolution) => ({ compiler, resolution }))
)

layer(Layer.mergeAll(Project.layer, TestDatabase.layerDemo), { excludeTestServices: true })("the package", (it) => {
  it.effect("is small, and has compiled code, declarations and what npm adds", () =>
    Effect.gen(function* () {
      const { packed } = yield* Project
      assert.isBelow(packed.unpackedSize, 2_000_000)
      const others = packed.files
        .map(({ path }) => path)
        .filter((path) => !/^dist\/.*(\.js|\.d\.ts)$/.test(path))
        .toSorted()
      assert.deepStrictEqual(others, ["LICENSE", "README.md", "dist/requireNode.cjs", "package.json"])
    })
  )

  it.effect("brings its peers, and shares the effect of its user", () =>
    Effect.gen(function* () {
      const { bare, whole } = yield* Project
      for (const project of [bare, whole]) {
        const { stdout } = yield* npm(["ls", "effect", "--all", "--parseable"], project)
        assert.deepStrictEqual([...new Set(stdout.trim().split("\n"))], [join(project, "node_modules/effect")])
      }
    })
  )

  it.effect("is refused beside an effect that it was not made for", () =>
    Effect.gen(function* () {
      const { bare, tarball } = yield* Project
      const { message } = yield* Effect.flip(
        npm(["install", "--no-save", "--package-lock-only", tarball, "effect@4.0.5"], bare)
      )
      assert.include(message, "ERESOLVE")
    })
  )

  it.effect("says what to do on an older Node, in one line", () =>
    Effect.gen(function* () {
      const { bare, folder } = yield* Project
      const older = join(folder, "older.cjs")
      writeFileSync(
        older,
        `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } })`
      )
      const { code, stderr } = yield* run(node24, ["--require", older, binOf(bare), "--version"], {
        cwd: bare,
        env: {}
      })
      assert.strictEqual(code, 1)
      assert.match(stderr, /^practice-data needs Node 22\.19 or later, and this is 20\.20\.2\. .+\n$/)
    })
  )

  it.effect("its command and its entries run as plain JavaScript on the oldest Node and on the newest", () =>
    Effect.gen(function* () {
      const { bare, nodes, whole } = yield* Project
      const { url } = yield* serve({ DATA_DIR: "memory" })
      for (const node of Object.values(nodes)) {
        const { stdout } = yield* succeed(node, [binOf(bare), "--version"], { cwd: bare, env: {} })
        assert.match(stdout, /practice-data v\d+\.\d+\.\d+/)
        yield* succeed(node, ["plain.mjs"], { cwd: whole, env: { PRACTICE_DATA_URL: url } })
      }
    }).pipe(Effect.scoped)
  )

  it.effect("serves a Postgres with several processes", () =>
    Effect.gen(function* () {
      const { url: DATABASE_URL } = yield* TestDatabase
      const { ended, kill, url } = yield* serve({ DATABASE_URL, PROCESSES: "2" })
      const { status } = yield* Effect.flatMap(Client.make(url), ({ ask }) => ask("/charges/search"))
      assert.strictEqual(status, 200)
      yield* kill("SIGTERM")
      assert.deepStrictEqual(yield* ended, { code: 0, signal: null })
    }).pipe(Effect.scoped)
  )

  it.effect.each(compilers)(
    "compiles strictly with $compiler and $resolution, libraries included",
    ({ compiler, resolution }) =>
      Effect.gen(function* () {
        const { whole } = yield* Project
        const tsc = join("node_modules", compiler, "bin/tsc")
        const module = resolution === "nodenext" ? "nodenext" : "esnext"
        const options = ["--project", ".", "--module", module, "--moduleResolution", resolution]
        yield* succeed(node24, [tsc, ...options], { cwd: whole, env: {} })
      })
  )

  it.effect("its fakes serve the tests of others", () =>
    Effect.gen(function* () {
      const { whole } = yield* Project
      const { stdout } = yield* succeed(node24, ["node_modules/vitest/vitest.mjs", "run"], {
        cwd: whole,
        env: { NO_COLOR: "1" }
      })
      assert.match(stdout, /Tests\s+2 passed \(2\)/)
    })
  )
})
