/**
 * The package, packed and installed into projects of others.
 *
 * @module-tag long
 */
import { cpSync, mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Config, Effect, Layer } from "effect"
import * as Client from "../../support/Client.ts"
import { startCommand } from "../../support/Process.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { node24, Project, root } from "./Project.ts"
import { readmeTests } from "./readmeTests.ts"
import { npm, run, succeed } from "./run.ts"
import { binOf, DemoService, serve } from "./Service.ts"

/** A script that makes a Node say that it is an older one. */
const olderIn = (folder: string) => {
  const script = join(folder, "older.cjs")
  writeFileSync(
    script,
    `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "20.20.2" } })`
  )
  return script
}

const tooOld = /^practice-data needs Node 22\.19 or later, and this is 20\.20\.2\. .+\n$/

/** A PATH on which `node` is a script in a folder. */
const pathOf = Effect.fnUntraced(function* (folder: string, script: string) {
  mkdirSync(folder)
  writeFileSync(join(folder, "node"), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return `${folder}:${yield* Config.String("PATH")}`
})

const compilers = [
  { compiler: "typescript5", resolution: "nodenext" },
  { compiler: "typescript7", resolution: "bundler" }
] as const

const installed = Layer.provideMerge(DemoService.layer, Project.layer)

layer(Layer.merge(installed, TestDatabase.layerDemo), { excludeTestServices: true })("the package", (it) => {
  it.effect("is small, and has compiled code, declarations and what npm adds", () =>
    Effect.gen(function* () {
      const { packed } = yield* Project
      assert.isBelow(packed.unpackedSize, 2_500_000)
      const others = packed.files
        .map(({ path }) => path)
        .filter((path) => !/^dist\/.*(\.js|\.d\.ts)$/.test(path))
        .toSorted()
      assert.deepStrictEqual(others, [
        "LICENSE",
        "README.md",
        "dist/operations/doctor/migrated.json",
        "dist/requireNode.cjs",
        "package.json",
        "src/cli/sync/README.md",
        "src/client/README.md"
      ])
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

  it.effect("without its peers, the client of promises works, and the command says what it lacks", () =>
    Effect.gen(function* () {
      const { bare, folder } = yield* Project
      const { url } = yield* DemoService
      const alone = join(folder, "alone")
      cpSync(join(bare, "node_modules/practice-data"), join(alone, "node_modules/practice-data"), { recursive: true })
      const program = `
        import { PracticeData } from "practice-data/client"
        const client = new PracticeData({ baseUrl: "${url}", apiKey: "pda_demo_harbor" })
        console.log((await client.organization.get()).id)`
      const { stdout } = yield* succeed(node24, ["--input-type=module", "--eval", program], { cwd: alone, env: {} })
      assert.strictEqual(stdout, "org_harbor\n")
      const { code, stderr } = yield* run(node24, [binOf(alone), "serve"], { cwd: alone, env: {} })
      assert.strictEqual(code, 1)
      assert.match(stderr, /^practice-data needs its peer dependencies: npm install .+\n$/)
    })
  )

  it.effect("says what to do on an older Node, in one line", () =>
    Effect.gen(function* () {
      const { bare, folder } = yield* Project
      const { code, stderr } = yield* run(node24, ["--require", olderIn(folder), binOf(bare), "--version"], {
        cwd: bare,
        env: {}
      })
      assert.strictEqual(code, 1)
      assert.match(stderr, tooOld)
    })
  )

  it.effect("its command and its entries run as plain JavaScript on the oldest Node and on the newest", () =>
    Effect.gen(function* () {
      const { bare, nodes, whole } = yield* Project
      const { url } = yield* DemoService
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

  it.effect("its APIs are served beside other routes, and asked by their typed clients", () =>
    Effect.gen(function* () {
      const { nodes, whole } = yield* Project
      const [oldest = node24] = Object.values(nodes)
      yield* succeed(oldest, ["mounted.ts"], { cwd: whole, env: { DATA_DIR: "memory" } })
    })
  )

  it.effect("a clone without dev dependencies starts on the oldest Node, and tells an older one what to do", () =>
    Effect.gen(function* () {
      const { folder, nodes } = yield* Project
      const clone = join(folder, "production")
      for (const name of ["src", "package.json", "package-lock.json", ".npmrc"]) {
        cpSync(join(root, name), join(clone, name), { recursive: true })
      }
      const [oldest = node24] = Object.values(nodes)
      const onOldest = yield* pathOf(join(folder, "oldest"), `exec ${oldest} "$@"`)
      const { stderr } = yield* npm(["ci", "--omit=dev"], clone, { PATH: onOldest })
      assert.strictEqual(stderr, "")
      const program = yield* startCommand(
        { file: "npm", args: ["start"], cwd: clone },
        { PATH: onOldest, DATA_DIR: "memory" }
      )
      yield* Effect.flatMap(program.address, Client.make).pipe(
        Effect.flatMap(({ ask }) => ask("/charges/search")),
        Effect.map(({ status }) => assert.strictEqual(status, 200)),
        // Npm passes this signal on. It cannot pass on the one at the end of the scope.
        Effect.ensuring(Effect.andThen(program.kill("SIGTERM"), program.ended))
      )
      assert.deepStrictEqual(yield* program.ended, { code: 0, signal: null })
      const { code, stderr: said } = yield* run("npm", ["start", "--silent"], {
        cwd: clone,
        env: { PATH: yield* pathOf(join(folder, "older"), `exec ${node24} --require ${olderIn(folder)} "$@"`) }
      })
      assert.strictEqual(code, 1)
      assert.match(said, tooOld)
    }).pipe(Effect.scoped)
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

  readmeTests(it)
})
