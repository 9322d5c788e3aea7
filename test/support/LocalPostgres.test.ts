/**
 * The Postgres that the other tests are given.
 *
 * @module-tag long
 */
import { cpSync, mkdirSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { temporaryFolder } from "./Process.ts"
import * as LocalPostgres from "./LocalPostgres.ts"

const reasonOf = (options: LocalPostgres.Options) =>
  LocalPostgres.make(options).pipe(
    Effect.scoped,
    Effect.flip,
    Effect.map(({ message }) => message)
  )

describe("A Postgres of our own", () => {
  it.live("starts from binaries that only their owner can enter, and keeps its data where it is told to", () =>
    Effect.gen(function* () {
      const folder = yield* LocalPostgres.enterableFolder
      const clone = join(folder, "clone")
      mkdirSync(clone, { mode: 0o700 })
      cpSync(yield* LocalPostgres.installed, join(clone, "native"), { recursive: true, verbatimSymlinks: true })

      const kept = join(folder, "data")
      const options = { binaries: join(clone, "native"), folder: kept }
      const first = yield* LocalPostgres.make(options).pipe(
        Effect.map((postgres) => postgres.pid()),
        Effect.scoped
      )
      const second = yield* LocalPostgres.make(options)
      assert.isDefined(first)
      assert.isDefined(second.pid())
      assert.include(yield* reasonOf({ folder: kept }), "postmaster.pid")

      yield* second.stopImmediately
      assert.isUndefined(second.pid())
      assert.include(yield* reasonOf({ folder: kept, settings: { max_connections: "many" } }), "max_connections")
    }).pipe(Effect.scoped)
  )

  it.live("says why there is none", () =>
    Effect.gen(function* () {
      const folder = yield* temporaryFolder
      assert.include(yield* reasonOf({ binaries: join(folder, "nothing") }), "nothing")
    }).pipe(Effect.scoped)
  )
})
