/**
 * Commands on the embedded database: while the service runs on it, killed at any point, and among themselves.
 *
 * @module-tag long
 */
import { connect } from "node:net"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Random } from "effect"
import * as Client from "../../support/Client.ts"
import * as Process from "../../support/Process.ts"
import { usedFolder } from "../../support/Program.ts"
import { type Ended, processWith, runWith } from "../../support/cli.ts"

/** The program on a folder of its own, with commands on the same one. */
const service = Effect.gen(function* () {
  const folder = yield* usedFolder
  const environment = { DATA_DIR: join(folder, ".data") }
  const process = yield* Process.start({ ...environment, DELETION_DELAY: "1 second" })
  const client = Client.patient(yield* Client.make(yield* process.address))
  const command = (...args: ReadonlyArray<string>) => runWith(environment, args)
  return { process, client, command, environment }
})

const succeeded = ({ code, stderr, stdout }: Ended) => {
  assert.strictEqual(code, 0, stderr)
  return stdout.trim()
}

const creating = (organization: string) => ["keys", "create", "--organization", organization, "--name", "Test"]

const startup = Buffer.from("\0\0\0\x29\0\x03\0\0user\0postgres\0database\0postgres\0\0", "latin1")
const begin = Buffer.from("Q\0\0\0\x0abegin\0", "latin1")

/** A guest with a transaction that it never ends. */
const holder = (folder: string) =>
  Effect.callback<void>((resume) => {
    let answers = 0
    const socket = connect(join(folder, "lock.sock"))
    socket
      .on("error", () => undefined)
      .on("data", () => {
        if (++answers === 1) return socket.write(begin)
        return resume(Effect.void)
      })
    socket.write(startup)
  })

describe("Commands on the embedded database", () => {
  it.live("do what they do on a Postgres, while the service runs", () =>
    Effect.gen(function* () {
      const { client, command, environment, process } = yield* service
      const key = succeeded(yield* processWith({ environment }, creating("org_oakridge")))
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
      assert.strictEqual((yield* client.call({ path: "/api/v3/charges/search", headers, body: "{}" })).status, 200)
      const [line = "{}"] = succeeded(yield* command("keys", "list", "--json")).split("\n")
      assert.include(line, "key_")
      assert.strictEqual(succeeded(yield* command("migrate")), "Nothing to apply")
      assert.strictEqual((yield* command("demo")).code, 1)
      const doctor = yield* command("doctor", "--json")
      assert.include(doctor.stdout, "Another process has it open, and shares it.")
      const PRACTICE_DATA_URL = yield* process.address
      const sending = ["send", "--organization", "org_oakridge", "--invoice", "invoice_oakridge_0002", "--key", "k1"]
      const sent = yield* runWith({ PRACTICE_DATA_URL, PRACTICE_DATA_API_KEY: key }, [...sending, "--wait"])
      assert.match(succeeded(sent), /^Deleted +1 invoice with 3 lines$/m)
      const shown = yield* command("tasks", "show", "--organization", "org_oakridge", "--idempotency-key", "k1")
      assert.match(succeeded(shown), /^State +completed$/m)
    }).pipe(Effect.scoped)
  )

  it.live("make secrets, with which `send` signs", () =>
    Effect.gen(function* () {
      const { command, process } = yield* service
      const PRACTICE_DATA_URL = yield* process.address
      const sending = ["send", "--organization", "org_oakridge", "--invoice", "invoice_oakridge_0003"]
      const secret = succeeded(yield* command("secrets", "add", "--organization", "org_oakridge"))
      const unsigned = yield* runWith({ PRACTICE_DATA_URL }, sending)
      assert.strictEqual(unsigned.code, 1)
      assert.match(unsigned.stderr, /^401 /)
      const signed = yield* runWith({ PRACTICE_DATA_URL, PRACTICE_DATA_SIGNING_SECRET: secret }, sending)
      assert.match(succeeded(signed), /^Status +scheduled$/m)
    }).pipe(Effect.scoped)
  )

  it.live("take turns, many at once", () =>
    Effect.gen(function* () {
      const { client, command } = yield* service
      const commands = Effect.replicateEffect(command(...creating("org_many")), 20, { concurrency: 8 })
      const requests = Effect.forever(
        Effect.map(client.ask("/charges/search"), ({ status }) => assert.strictEqual(status, 200))
      )
      const ended = yield* Effect.raceFirst(commands, requests)
      const keys = new Set(ended.map(succeeded))
      assert.strictEqual(keys.size, 20)
      const listed = succeeded(yield* command("keys", "list", "--organization", "org_many", "--json"))
      assert.lengthOf(listed.split("\n"), 20)
    }).pipe(Effect.scoped)
  )

  it.live("leave the service and the data whole when they are killed", () =>
    Effect.gen(function* () {
      const { client, command, environment } = yield* service
      const times = yield* Effect.replicateEffect(Random.nextIntBetween(300, 1000), 8)
      let made = 0
      for (const killedAfter of times) {
        const { stdout } = yield* processWith({ environment, killedAfter }, creating("org_killed"))
        made += stdout === "" ? 0 : 1
        assert.strictEqual((yield* client.ask("/charges/search", { limit: 1 })).status, 200)
      }
      const listed = (yield* command("keys", "list", "--organization", "org_killed", "--json")).stdout
      assert.isAtLeast(listed.split("\n").length - 1, made)
    }).pipe(Effect.scoped)
  )

  it.live("go on by themselves when the service is killed while one is on", () =>
    Effect.gen(function* () {
      const { command, environment, process } = yield* service
      yield* holder(environment.DATA_DIR)
      const waiting = yield* Effect.forkChild(command("keys", "list"))
      yield* Effect.sleep("300 millis")
      yield* process.kill("SIGKILL")
      assert.include(succeeded(yield* Fiber.join(waiting)), "org_oakridge")
    }).pipe(Effect.scoped)
  )

  it.live("let each other in where no service runs, and say where none can", () =>
    Effect.gen(function* () {
      const environment = { DATA_DIR: join(yield* usedFolder, ".data") }
      const both = yield* Effect.replicateEffect(processWith({ environment }, creating("org_both")), 3, {
        concurrency: "unbounded"
      })
      assert.strictEqual(new Set(both.map(succeeded)).size, 3)
      const inMemory = yield* runWith({ DATA_DIR: "memory" }, ["keys", "list"])
      assert.strictEqual(inMemory.code, 1)
      assert.include(inMemory.stderr, "DATA_DIR=memory")
    }).pipe(Effect.scoped)
  )
})
