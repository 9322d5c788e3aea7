/** The file of passwords that libpq reads: a line is `host:port:database:user:password`, and `*` fits anything. */
import { readFile, stat } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { Effect, Redacted } from "effect"

/** Where the file is unless a URL or PGPASSFILE names it. */
export const usual = join(homedir(), ".pgpass")

/** Whose password it is. */
export interface Login {
  /** The folder of a socket is also `localhost`. */
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
}

const field = String.raw`((?:\\.|[^:\\])*)`
const line = new RegExp(`^${[field, field, field, field].join(":")}:(.+)$`)

/** A backslash takes the next character as it is. */
const unescape = (text: string) => text.replaceAll(/\\(.)/g, "$1")

/** The password of a login in the text of such a file: that of the first line that fits. */
export const find = (text: string, { database, host, port, user }: Login): string | undefined => {
  const wanted = [host.startsWith("/") ? [host, "localhost"] : [host], [String(port)], [database], [user]]
  for (const each of text.split(/\r?\n/)) {
    const [password, ...fields] = line.exec(each)?.slice(1).toReversed() ?? []
    if (password === undefined || each.startsWith("#")) continue
    const given = fields.toReversed()
    const fits = wanted.every((names, at) => given[at] === "*" || names.includes(unescape(given[at] ?? "")))
    if (fits) return unescape(password)
  }
  return undefined
}

const groupAndOthers = 0o077

/** The password of a login in a file. One that cannot be read has none, nor one that others may read: as for libpq. */
export const lookUp = (file: string, login: Login): Effect.Effect<Redacted.Redacted | undefined> =>
  Effect.gen(function* () {
    const { mode } = yield* Effect.tryPromise(() => stat(file))
    if (process.platform !== "win32" && (mode & groupAndOthers) !== 0) return undefined
    return find(yield* Effect.tryPromise(() => readFile(file, "utf8")), login)
  }).pipe(
    Effect.map((password) => (password === undefined ? undefined : Redacted.make(password))),
    Effect.orElseSucceed(() => undefined)
  )
