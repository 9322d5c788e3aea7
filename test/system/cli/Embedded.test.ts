/**
 * Commands on the embedded database, which serves one process.
 *
 * @module-tag long
 */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Client from "../../support/Client.ts"
import { processWith, runWith } from "../../support/cli.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"

const creating = ["keys", "create", "--organization", "org_oakridge", "--name", "Test"]

it.live("While the service runs, commands and another service say to stop it; then they work", () =>
  Effect.gen(function* () {
    const environment = { DATA_DIR: join(yield* Program.usedFolder, ".data") }
    const service = yield* Process.start(environment)
    const client = Client.patient(yield* Client.make(yield* service.address))
    const says = `in ${environment.DATA_DIR} is in use by process ${service.pid}, such as the running service`
    const [refused, second] = yield* Effect.all([runWith(environment, creating), Process.startToEnd(environment)], {
      concurrency: "unbounded"
    })
    assert.strictEqual(refused.code, 1)
    assert.match(refused.stderr, new RegExp(`${says}.+Stop that first`))
    assert.strictEqual(second.code, 1)
    assert.include(second.output, says)
    assert.strictEqual((yield* client.ask("/charges/search")).status, 200)
    yield* Program.kill(service)
    const created = yield* processWith({ environment }, creating)
    assert.match(created.stdout, /^pda_live_/, created.stderr)
  })
)
