/** The README's code runs as its reader runs it. A block of commands that no test here knows is a failure. */
import { cpSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, type Vitest } from "@effect/vitest"
import { Config, Deferred, Effect, Fiber, Predicate } from "effect"
import * as Client from "../../support/Client.ts"
import { startCommand } from "../../support/Process.ts"
import { freePort } from "../../support/LocalPostgres.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import { node24, Project, root } from "./Project.ts"
import { snippets } from "./readme.ts"
import { succeed } from "./run.ts"
import { binOf, DemoService } from "./Service.ts"

/** A server that has the data API beside a route of its own. */
const servesBesideOthers = Effect.fnUntraced(function* (address: string) {
  const { ask, call } = Client.patient(yield* Client.make(address))
  const hello = yield* call({ path: "/hello", method: "GET", headers: {} })
  assert.deepStrictEqual([hello.status, hello.text], [200, "Hello"])
  const records = yield* ask("/charges/search", { limit: 1 })
  assert.strictEqual(records.status, 200)
  assert.property(records.headers, "x-request-id")
  const nothing = yield* ask("/nothing")
  assert.deepStrictEqual([nothing.status, nothing.text], [404, `{"detail":"Not Found"}`])
})

const isRefused = ({ cause }: Client.NoAnswer) => Predicate.hasProperty(cause, "code") && cause.code === "ECONNREFUSED"

/** Asks from the very start, each time on a connection of its own. All that are taken are answered. */
const answersFromTheStart = Effect.fnUntraced(function* (address: string) {
  const ask = Effect.scoped(Effect.flatMap(Client.make(address, 1), (client) => client.ask("/charges/search")))
  const isUp = yield* Deferred.make<void>()
  const fibers: Array<Fiber.Fiber<unknown, Client.NoAnswer>> = []
  const answered = Effect.flatMap(ask, ({ status }) => {
    // A busy machine may have no connection to its database yet.
    assert.include([200, 503], status)
    return status === 200 ? Deferred.succeed(isUp, undefined) : Effect.void
  })
  const refused = Effect.catchIf(answered, isRefused, () => Effect.void)
  yield* Effect.map(Effect.forkScoped(refused), (fiber) => fibers.push(fiber)).pipe(
    Effect.andThen(Effect.sleep("10 millis")),
    Effect.forever,
    Effect.raceFirst(Deferred.await(isUp))
  )
  yield* Fiber.joinAll(fibers)
})

const readme = snippets()

/** The commands in the README that are tried elsewhere, or that need what a reader has: his Postgres, his shell. */
const untried = ["npm ci && npm start", "npm ci && npm test"]

/** Those that `test/system/operations/Runbook.test.ts` tries, by their beginnings. */
const ofRunbook = ["pg_dumpall ", 'psql --dbname="$', "npm run cli -- keys create "]

const isCurl = (code: string) => code.startsWith("curl ")

const isSync = (code: string) => code.includes(" sync ")

const isOperate = (code: string) => code.includes(" migrate\n")

/** The commands of a block of the README, as the package has them, on a Node. */
const byPackage = (code: string, node: string, project: string) =>
  code.replaceAll(/npm run (--silent )?cli --/g, `${node} ${binOf(project)}`)

/** What a reader's address stands for. */
const at = (url: string, code: string) => code.replaceAll("http://127.0.0.1:3000", url)

export const readmeTests = (it: Vitest.MethodsNonLive<Project | DemoService | TestDatabase>) => {
  it.effect("the README's programs run as they are", () =>
    Effect.gen(function* () {
      const { nodes, programs, whole } = yield* Project
      const { url } = yield* DemoService
      assert.isNotEmpty(programs)
      for (const { code, name } of programs) {
        const [oldest = node24] = Object.values(nodes)
        if (code.includes("Layer.launch")) {
          for (const environment of [{ DATA_DIR: "memory" }, { DATABASE_URL: (yield* TestDatabase).url }]) {
            const port = yield* freePort
            writeFileSync(join(whole, name), code.replace("port: 3000", `port: ${port}`))
            const server = yield* startCommand({ file: oldest, args: [name], cwd: whole }, environment)
            yield* answersFromTheStart(`http://127.0.0.1:${port}`)
            yield* servesBesideOthers(yield* server.address)
            yield* server.kill("SIGTERM")
            assert.deepStrictEqual(yield* server.ended, { code: 130, signal: null })
          }
        } else {
          writeFileSync(join(whole, name), at(url, code))
          yield* succeed(oldest, [name], { cwd: whole, env: {} })
        }
      }
    }).pipe(Effect.scoped)
  )

  it.effect("the README's commands of curl are answered", () =>
    Effect.gen(function* () {
      const { folder } = yield* Project
      const { url } = yield* DemoService
      const commands = readme.filter(({ code, language }) => language === "sh" && isCurl(code))
      assert.isNotEmpty(commands)
      for (const { code } of commands) {
        const strict = `curl() { command curl --fail-with-body "$@"; }\n${at(url, code)}`
        yield* succeed("sh", ["-ec", strict], { cwd: folder, env: { PATH: yield* Config.String("PATH") } })
      }
    }).pipe(Effect.scoped)
  )

  it.effect("the README's copies are made, by the package's command on the oldest Node", () =>
    Effect.gen(function* () {
      const { bare, folder, nodes } = yield* Project
      const { url } = yield* DemoService
      const postgres = new URL((yield* TestDatabase).url)
      postgres.searchParams.set("schema", "practice")
      const [oldest = node24] = Object.values(nodes)
      const copies = join(folder, "copies")
      mkdirSync(copies)
      const [block] = readme.filter(({ code, language }) => language === "sh" && isSync(code))
      assert.isDefined(block)
      const commands = byPackage(at(url, block.code), oldest, bare)
        .replaceAll(/postgres:[^']+/g, postgres.href)
        // It goes on until it is stopped.
        .replaceAll(/ --watch \d+/g, "")
      const env = { PATH: yield* Config.String("PATH") }
      const { stderr } = yield* succeed("sh", ["-ec", commands], { cwd: copies, env })
      assert.notInclude(stderr, "Warning")
      const made = readdirSync(copies)
      assert.includeMembers(made, ["practice.db", "copy"])
    })
  )

  it.effect("the README's commands for operators prepare a Postgres", () =>
    Effect.gen(function* () {
      const { bare } = yield* Project
      const [block] = readme.filter(({ code, language }) => language === "sh" && isOperate(code))
      assert.isDefined(block)
      const commands = byPackage(block.code, node24, bare)
        .replace("postgres://...", yield* emptyDatabase)
        // It goes on until it is stopped.
        .replace(/^npm start$/m, "")
      const { stdout } = yield* succeed("sh", ["-ec", commands], { cwd: bare, env: {} })
      assert.match(stdout, /pda_live_\w+/)
    })
  )

  it.effect("no command of the README is left out by oversight", () =>
    Effect.sync(() => {
      const left = readme
        .filter(({ code, language }) => language === "sh" && !isCurl(code) && !isSync(code) && !isOperate(code))
        .map(({ code }) => code.split("\n", 1).join(""))
        .filter((first) => !ofRunbook.some((beginning) => first.startsWith(beginning)))
      assert.sameMembers(left, untried)
    })
  )

  it.effect("the README's files of the clone compile where they say they are", () =>
    Effect.gen(function* () {
      const { folder } = yield* Project
      const clone = join(folder, "clone")
      for (const name of ["src", "package.json", "tsconfig.json"]) {
        cpSync(join(root, name), join(clone, name), { recursive: true })
      }
      symlinkSync(join(root, "node_modules"), join(clone, "node_modules"))
      const files = readme.flatMap(({ code, file }) => (file === undefined ? [] : [{ code, file }]))
      assert.isNotEmpty(files)
      for (const { code, file } of files) writeFileSync(join(clone, file), code, { flag: "wx" })
      writeFileSync(
        join(clone, "tsconfig.readme.json"),
        Client.json({ extends: "./tsconfig.json", include: files.map(({ file }) => file), exclude: [] })
      )
      const tsc = join(root, "node_modules/typescript/bin/tsc")
      yield* succeed(node24, [tsc, "--project", "tsconfig.readme.json"], { cwd: clone, env: {} })
      yield* succeed(node24, files.map(({ file }) => `--import=./${file}`).concat("--eval", ""), {
        cwd: clone,
        env: {}
      })
    })
  )
}
