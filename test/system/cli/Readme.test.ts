/**
 * The README's commands for production, as they stand there: from an empty Postgres to a synced copy.
 *
 * @module-tag long
 */
import { readdirSync, symlinkSync } from "node:fs"
import { createServer } from "node:net"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { assert, it } from "@effect/vitest"
import { Config, Effect } from "effect"
import * as Listening from "../../support/Listening.ts"
import * as Process from "../../support/Process.ts"
import { succeed } from "../../support/run.ts"
import { snippetsOf } from "../../support/snippets.ts"
import { emptyDatabase, TestDatabase } from "../../support/TestDatabase.ts"

const section = snippetsOf("README.md").find(({ code }) => code.startsWith("export DATABASE_URL="))

it.live(
  "The README's commands lead from an empty Postgres to a synced copy",
  () =>
    Effect.gen(function* () {
      const url = yield* emptyDatabase
      const port = String((yield* Effect.scoped(Listening.on(createServer()))).port)
      const cwd = yield* Process.temporaryFolder
      for (const name of ["package.json", "node_modules", "src"]) symlinkSync(join(Process.root, name), join(cwd, name))
      const commands = (section?.code ?? "").replace(/postgres:\S+/, url).replaceAll("3000", port)
      const { stdout } = yield* succeed("bash", ["-ec", `trap 'kill $! || true; wait || true' EXIT\n${commands}`], {
        cwd,
        env: {
          PATH: yield* Config.String("PATH"),
          HOME: cwd,
          PORT: port,
          PRACTICE_DATA_URL: `http://127.0.0.1:${port}`
        }
      })
      assert.include(stdout, "Created org_1")
      assert.include(readdirSync(cwd), "practice.db")
      const copy = new DatabaseSync(join(cwd, "practice.db"), { readOnly: true })
      assert.deepStrictEqual(
        copy
          .prepare("select id, name from organizations")
          .all()
          .map((row) => ({ ...row })),
        [{ id: "org_1", name: "Happy Paws" }]
      )
      copy.close()
    }).pipe(Effect.scoped, Effect.provide(TestDatabase.layer)),
  300_000
)
