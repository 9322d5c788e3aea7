/** Runs a command of the operators as they do: as a process of its own, over the database of the test. */
import { execFile } from "node:child_process"
import { join } from "node:path"
import { Effect } from "effect"
import { TestDatabase } from "../support/TestDatabase.ts"

const root = join(import.meta.dirname, "../..")

/** How a command ended. */
export interface Ended {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

/** Runs a command to its end, which a slow one meets after 30 seconds. */
export const cli = (...command: ReadonlyArray<string>) =>
  Effect.flatMap(TestDatabase, ({ url }) =>
    Effect.callback<Ended>((resume) => {
      const child = execFile(
        join(root, "node_modules/.bin/node"),
        [join(root, "src/cli.ts"), ...command],
        { env: { DATABASE_URL: url, NO_COLOR: "1" }, timeout: 30_000 },
        (_, stdout, stderr) => resume(Effect.succeed({ code: child.exitCode ?? -1, stdout, stderr }))
      )
    })
  )
