/**
 * Commands on the embedded database: while the service runs on it, killed at any point, and among themselves.
 *
 * @module-tag long
 */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect, Random } from "effect"
import * as Client from "../../support/Client.ts"
import { processWith, runWith } from "../../support/cli.ts"
import type { Ended } from "../../support/run.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"

// Each test starts an embedded database and a dozen commands.
const slowly = 150_000

/** The program on a folder of its own, with commands on the same one. */
const service = Effect.gen(function* () {
  const environment = { DATA_DIR: join(yield* Program.usedFolder, ".data") }
  const process = yield* Process.start({ ...environment, DELETION_DELAY: "1s" })
  const client = Client.patient(yield* Client.make(yield* process.address))
  const command = (...args: ReadonlyArray<string>) => runWith(environment, args)
  return { client, command, environment, process }
})

const succeeded = ({ code, stderr, stdout }: Ended) => {
  assert.strictEqual(code, 0, stderr)
  return stdout.trim()
}

const creating = (organization: string) => ["keys", "create", "--organization", organization, "--name", "Test"]

it.live(
  "Commands on the embedded database do what they do on a Postgres, while the service runs",
  () =>
    Effect.gen(function* () {
      const { client, command, environment } = yield* service
      const key = succeeded(yield* processWith({ environment }, creating("org_oakridge")))
      const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" }
      assert.strictEqual((yield* client.call({ path: "/api/v3/charges/search", headers, body: "{}" })).status, 200)
      assert.include(succeeded(yield* command("keys", "list", "--json")), "key_")
      assert.strictEqual(succeeded(yield* command("migrate")), "Nothing to apply")
      assert.strictEqual((yield* command("demo")).code, 1)
      assert.include((yield* command("doctor", "--json")).stdout, "Another process has it open and shares it.")
    }),
  slowly
)

it.live(
  "Commands take turns, many at once, leave the service and the data whole when they are killed, and let each other in after it",
  () =>
    Effect.gen(function* () {
      const { client, command, environment, process } = yield* service
      const requests = Effect.forever(
        Effect.map(client.ask("/charges/search"), ({ status }) => assert.strictEqual(status, 200))
      )
      const creations = Effect.replicateEffect(command(...creating("org_many")), 20, { concurrency: 8 })
      const ended = yield* Effect.raceFirst(creations, requests)
      assert.strictEqual(new Set(ended.map(succeeded)).size, 20)
      let made = 20
      for (const killedAfter of yield* Effect.replicateEffect(Random.nextIntBetween(300, 1000), 6)) {
        const { stdout } = yield* processWith({ environment, killedAfter }, creating("org_many"))
        made += stdout === "" ? 0 : 1
        assert.strictEqual((yield* client.ask("/charges/search", { limit: 1 })).status, 200)
      }
      yield* Program.stop(process)
      const alone = processWith({ environment }, creating("org_many"))
      made += (yield* Effect.all([alone, alone, alone], { concurrency: "unbounded" })).map(succeeded).length
      const listed = succeeded(yield* command("keys", "list", "--organization", "org_many", "--json"))
      assert.isAtLeast(listed.split("\n").length, made)
    }),
  slowly
)
