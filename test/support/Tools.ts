/** The programs of Postgres that npm does not install, such as `pg_dump`, where the machine has them. */
import { existsSync, readdirSync } from "node:fs"
import { dirname, join } from "node:path"
import { succeed } from "./run.ts"

const installations = (folder: string) =>
  existsSync(folder) ? readdirSync(folder).map((version) => join(folder, version)) : []

// Tests are skipped where they are declared, before there is an effect that could read the configuration.
// oxlint-disable-next-line effecttsgo/process-env
const { PATH = "", POSTGRES_BINARIES } = process.env

/** To try the tests with another version by hand: a folder with `bin` in it. */
export const given = POSTGRES_BINARIES

const candidates = [
  given ?? "",
  ...PATH.split(":").map((folder) => dirname(folder)),
  ...installations("/usr/lib/postgresql"),
  ...installations("/opt/homebrew/opt")
]

/** A folder with a Postgres that has these files. */
export const folderWith = (...files: ReadonlyArray<string>) =>
  candidates.find(
    (folder) =>
      folder !== "" && ["bin/initdb", "bin/postgres", ...files].every((file) => existsSync(join(folder, file)))
  )

/** A folder with a Postgres and its tools, to start a cluster from: tools cannot dump a newer server than themselves. */
export const binaries = folderWith("bin/pg_dump", "bin/pg_restore")

/** Of a test that needs the tools, its name: with why it is skipped, where it is. */
export const named = (name: string) => (binaries === undefined ? `${name} (skipped: there is no pg_dump here)` : name)

/** Runs a tool to its end. */
export const run = (name: string, ...args: ReadonlyArray<string>) =>
  succeed(join(binaries ?? "", "bin", name), args, { cwd: "/", env: {} })
