/** The programs of Postgres that npm does not install, such as `pg_dump`, where the machine has them. */
import { execFile } from "node:child_process"
import { existsSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { Data, Effect } from "effect"

/** A program failed. */
export class ToolFailed extends Data.TaggedError("ToolFailed")<{ readonly message: string }> {}

const installations = (folder: string) =>
  existsSync(folder) ? readdirSync(folder).map((version) => join(folder, version)) : []

const candidates = [
  process.env["POSTGRES_BINARIES"] ?? "",
  ...(process.env["PATH"] ?? "").split(":").map((folder) => dirname(folder)),
  ...installations("/usr/lib/postgresql"),
  ...installations("/opt/homebrew/opt")
]

/** A folder with a Postgres and its tools, to start a cluster from: tools cannot dump a newer server than themselves. */
export const binaries = candidates.find(
  (folder) =>
    folder !== "" &&
    ["initdb", "postgres", "pg_dump", "pg_restore"].every((name) => existsSync(join(folder, "bin", name)))
)

/** Of a test that needs the tools, its name: with why it is skipped, where it is. */
export const named = (name: string) => (binaries === undefined ? `${name} (skipped: there is no pg_dump here)` : name)

/** Runs a tool to its end. */
export const run = (name: string, ...args: ReadonlyArray<string>) =>
  Effect.callback<void, ToolFailed>((resume) => {
    execFile(join(binaries ?? "", "bin", name), args, { cwd: "/" }, (cause, _, stderr) =>
      resume(
        cause === null ? Effect.void : Effect.fail(new ToolFailed({ message: `${name}: ${stderr || cause.message}` }))
      )
    )
  })
