/** Checks the way to a database: where its connections go, and whether they are encrypted. */
import { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { formatHost } from "../../database/ConnectionUrl.ts"
import type { Database } from "../../database/Database.ts"
import type { Verification } from "../../database/ServerTls.ts"
import { isSocket } from "../../database/Endpoint.ts"
import { fail, ok, type Said, warn } from "./Finding.ts"

const isLocal = ({ host }: { readonly host: string }) =>
  /^(localhost|127\.|::1$)/.test(host) || isSocket({ host, port: 0 })

const verified: Readonly<Record<Verification, string>> = {
  none: "the server is not verified",
  authority: "its certificate is verified, and not its host",
  host: "its certificate and host are verified"
}

/** TLS as the server has it. A pooler in between has a connection of its own to it, of which it may tell. */
const tlsOf = (sql: Database) =>
  Effect.map(
    sql<{ tls: string | null }>`
      select version || ', ' || cipher as tls from pg_stat_ssl where pid = pg_backend_pid() and ssl`,
    ([row]) => row?.tls ?? "TLS"
  )

/**
 * The connections of a pool.
 *
 * @param name of the pool
 * @param variable that holds its URL
 */
export const check = Effect.fnUntraced(function* (
  sql: Database,
  name: string,
  variable: string
): Effect.fn.Return<ReadonlyArray<Said>, SqlError> {
  const { route } = sql
  if (route === undefined) return []
  const endpoint = route.endpoint()
  const { tls } = endpoint
  const others = route.url.hosts.length - 1
  const [session] = yield* sql<{ login: string }>`select session_user as login`
  const encryption = tls === undefined ? "not encrypted" : `${yield* tlsOf(sql)}, ${verified[tls.verification]}`
  const password = route.passwordSource === undefined ? "no password" : `the password of ${route.passwordSource}`
  const said: Array<Said> = [
    ok(
      `The ${name} is at ${formatHost(endpoint)}${others === 0 ? "" : `, of ${others + 1} servers`}: ${encryption}; login ${session?.login ?? "unknown"}, ${password}.`
    )
  ]
  // Two hosts of the URL may be the same server.
  const primaries = new Map(
    others === 0 ? [] : (yield* route.servers).flatMap((one) => (one.isStandby ? [] : [[one.started, formatHost(one)]]))
  )
  if (primaries.size > 1) {
    said.push(
      fail(
        `Several of its servers are primaries, so what is written may be lost: ${[...primaries.values()].join(", ")}.`,
        "Stop the one that was primary before, and make it a standby of the other."
      )
    )
  }
  if (!isLocal(endpoint) && tls === undefined) {
    said.push(
      warn(
        "The connection is not encrypted.",
        `Add sslmode=verify-full to the URL of ${variable}, unless a proxy encrypts.`
      )
    )
  }
  if (!isLocal(endpoint) && tls?.verification === "none") {
    said.push(
      warn(
        "The connection is encrypted, and may go to anyone: the server is not verified.",
        `Add sslmode=verify-full to the URL of ${variable}, with sslrootcert=FILE or sslrootcert=system.`
      )
    )
  }
  if (!endpoint.asksSettings) {
    said.push(
      warn(
        "A connection pooler refuses to be asked for settings of sessions, and was not asked.",
        "Give the login the settings that are said to be missing."
      )
    )
  }
  return said
})
