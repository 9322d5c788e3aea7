/**
 * The program's life on its embedded database: first start, second start, and sudden death.
 *
 * @module-tag long
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Client from "../../support/Client.ts"
import { everything, searchable } from "../../contract/Contract.ts"
import { InProcess, key, other, send } from "../../support/inProcess.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"

/** The responses to searches for everything, by both organizations, as a function returns the text of one. */
const everythingBy = <E, R>(ask: (path: string, body: object, key: string) => Effect.Effect<string, E, R>) =>
  Effect.forEach(searchable, (resource) =>
    Effect.forEach([key, other.key], (given) => ask(`/${resource.name}/search`, everything(resource), given))
  )

/** Starts in a folder, answers everything, and is killed. */
const answersFrom = (environment: Process.Environment, folder: string) =>
  Effect.flatMap(Program.start(environment, { folder }), ({ client }) =>
    everythingBy((path, body, given) =>
      Effect.map(Client.patient(client).ask(path, body, given === key ? "oakridge" : "harbor"), ({ status, text }) => {
        assert.strictEqual(status, 200, text)
        return text
      })
    )
  ).pipe(Effect.scoped)

/** The responses of the fakes, which have the same records. */
const demo = everythingBy((path, json, given) =>
  Effect.map(send({ path: `/api/v3${path}`, json, headers: { authorization: `Bearer ${given}` } }), ({ text }) => text)
).pipe(Effect.provide(InProcess.layer()))

const dieAt = join(import.meta.dirname, "dieAt.ts")

describe.concurrent("The program on its embedded database", () => {
  it.live("makes the demo data in .data where DATA_DIR is not set, and finds it at its next start", () =>
    Effect.gen(function* () {
      const folder = yield* Program.usedFolder
      assert.deepStrictEqual(readdirSync(folder), [".data"])
      // Without migrations, an empty database would have no tables to read.
      assert.deepStrictEqual(yield* answersFrom({ MIGRATE: "false" }, folder), yield* demo)
    })
  )

  it.live.each([
    ["half of the cluster was written", ":500"],
    ["the tables were being filled", "insert into charges:20"]
  ] as const)("starts after a kill -9 when, in its very first start, %s", ([, at]) =>
    Effect.gen(function* () {
      const folder = yield* Process.temporaryFolder
      const environment = { DATA_DIR: "data", DIE_AT: at, NODE_OPTIONS: `--import ${dieAt}` }
      const { ended, output } = yield* Process.start(environment, folder)
      assert.strictEqual((yield* ended).signal, "SIGKILL")
      assert.notInclude(output(), "Listening")
      assert.deepStrictEqual(yield* answersFrom({ DATA_DIR: "data" }, folder), yield* demo)
    })
  )
})
