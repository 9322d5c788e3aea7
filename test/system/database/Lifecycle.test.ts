/**
 * The program's life on its embedded database: first start, second start, sudden death, two at once.
 *
 * @module-tag long
 */
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { searchable } from "../../support/contract/Contract.ts"
import * as Client from "../../support/Client.ts"
import * as Process from "../../support/Process.ts"
import { everything } from "../../support/Records.ts"
import { options } from "../../support/Service.ts"
import { usedFolder } from "../../support/usedFolder.ts"

/** Every byte that a program at an address answers to searches for everything, on behalf of both organizations. */
const answersOf = Effect.fnUntraced(function* (address: string) {
  const { ask } = Client.patient(yield* Client.make(address))
  return yield* Effect.forEach(searchable, (resource) =>
    Effect.forEach(["oakridge", "harbor"] as const, (organization) =>
      Effect.map(ask(`/${resource.name}/search`, everything(resource), organization), ({ status, text }) => {
        assert.strictEqual(status, 200, text)
        return text
      })
    )
  )
}, Effect.scoped)

/** Starts in a folder, answers everything, and is killed. */
const answersFrom = (environment: Process.Environment, folder: string) =>
  Effect.gen(function* () {
    const { address } = yield* Process.start(environment, folder)
    return yield* answersOf(yield* address)
  }).pipe(Effect.scoped)

class Data extends Context.Service<
  Data,
  {
    /** What the demo data answers, as a program that keeps nothing loads it. */
    readonly demo: Effect.Success<ReturnType<typeof answersOf>>
  }
>()("practice-data/test/system/database/Lifecycle/Data") {
  static readonly layer = Layer.effect(
    Data,
    Effect.gen(function* () {
      const empty = yield* Process.temporaryFolder
      const demo = yield* answersFrom({ DATA_DIR: "memory" }, empty)
      assert.deepStrictEqual(readdirSync(empty), [], "memory leaves nothing behind")
      return { demo }
    })
  )
}

/** Moments of a first start: a statement that was sent, and how many writes to files later it dies. */
const moments = [
  { moment: "half of the cluster was written", at: ":500" },
  { moment: "the tables were there and being filled", at: "insert into charges:20" }
]

const dieAt = join(import.meta.dirname, "../../support/dieAt.ts")

layer(Data.layer, { ...options, concurrent: true })("The program on its embedded database", (it) => {
  it.effect("makes the demo data at its first start, in .data where DATA_DIR is not set, the same everywhere", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(readdirSync(yield* usedFolder), [".data"])
    })
  )

  it.effect("finds its data again at its next start", () =>
    Effect.gen(function* () {
      const { demo } = yield* Data
      // Without migrations, an empty database would have no tables to read.
      assert.deepStrictEqual(yield* answersFrom({ MIGRATE: "false" }, yield* usedFolder), demo)
    })
  )

  it.effect.each(moments)("starts after a kill -9 when, in its very first start, $moment", ({ at }) =>
    Effect.gen(function* () {
      const { demo } = yield* Data
      const folder = yield* Process.temporaryFolder
      const environment = { DATA_DIR: "a/b", DIE_AT: at, NODE_OPTIONS: `--import ${dieAt}` }
      yield* Effect.gen(function* () {
        const { ended, output } = yield* Process.start(environment, folder)
        assert.strictEqual((yield* ended).signal, "SIGKILL")
        assert.notInclude(output(), "Listening")
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(yield* answersFrom({ DATA_DIR: "a/b" }, folder), demo)
    })
  )

  it.effect("answers the same after a kill -9 in the middle of requests", () =>
    Effect.gen(function* () {
      const { demo } = yield* Data
      const folder = yield* usedFolder
      yield* Effect.gen(function* () {
        const { address, kill, ended } = yield* Process.start({}, folder)
        const requests = Effect.forever(answersOf(yield* address))
        const client = yield* Client.make(yield* address)
        const death = Effect.gen(function* () {
          yield* client.ask("/charges/search")
          yield* kill("SIGKILL")
          yield* ended
        })
        yield* Effect.raceFirst(Effect.ignore(requests), death)
      }).pipe(Effect.scoped)
      assert.deepStrictEqual(yield* answersFrom({}, folder), demo)
    })
  )

  it.effect("refuses a folder that another process uses, in one line that names it, and leaves the other alone", () =>
    Effect.gen(function* () {
      const { demo } = yield* Data
      const folder = join(yield* usedFolder, ".data")
      const { address } = yield* Process.start({ DATA_DIR: folder })
      yield* address
      const second = yield* Process.startToEnd({ DATA_DIR: folder })
      assert.isAbove(second.code ?? 0, 0)
      assert.include(second.output, folder)
      assert.include(second.output, "DATA_DIR")
      assert.strictEqual(second.output.trim().split("\n").length, 1, second.output)
      assert.deepStrictEqual(yield* answersOf(yield* address), demo)
    })
  )
})
