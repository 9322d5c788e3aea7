/**
 * Connections to a Postgres that has TLS on, with certificates of an authority that nobody knows, and over its socket.
 *
 * @module-tag long
 */
import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, chownSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { sqlMessage } from "../../../src/database/SqlFailure.ts"
import * as LocalPostgres from "../../support/LocalPostgres.ts"
import { clientOf } from "../../support/TestDatabase.ts"

const newKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
const by = "-CA authority.crt -CAkey authority.key -CAcreateserial -days 2"

/** Two authorities, and a certificate of the first. */
const certificates = [
  ...["authority", "stranger"].map(
    (name) => `req -x509 ${newKey} -days 2 -subj /CN=${name} -keyout ${name}.key -out ${name}.crt`
  ),
  `req ${newKey} -subj /CN=server -keyout server.key -out server.csr`,
  `x509 -req ${by} -in server.csr -extfile extensions -out server.crt`
]

const start = Effect.gen(function* () {
  const folder = yield* LocalPostgres.enterableFolder
  const data = join(folder, "data")
  // Its owner is known when it is made.
  yield* Effect.scoped(LocalPostgres.make({ folder: data }))
  const { gid, uid } = statSync(data)
  writeFileSync(join(folder, "extensions"), "subjectAltName=DNS:localhost")
  for (const line of certificates) execFileSync("openssl", line.split(" "), { cwd: folder, stdio: "ignore" })
  const key = join(folder, "server.key")
  chmodSync(key, 0o600)
  for (const path of [key, folder]) chownSync(path, uid, gid)
  const files = { ssl_cert_file: join(folder, "server.crt"), ssl_key_file: key, unix_socket_directories: folder }
  const { url } = yield* LocalPostgres.make({ folder: data, settings: { ssl: "on", ...files } })
  return { folder, port: new URL(url).port }
})

const encrypted = /^\w+ encrypted$/
const plain = /^\w+ plain$/
const unverified = /unable to verify|self.signed|unable to get/

const server = "postgres:postgres@localhost:PORT/postgres"
const unnamed = "postgres:postgres@127.0.0.1:PORT/postgres"
const known = "sslrootcert=FOLDER/authority.crt"
const unknown = "sslrootcert=FOLDER/stranger.crt"

/** URLs without `postgres://`, and the session of each, or the reason why there is none. */
const sessions = [
  [server, plain],
  [`${server}?sslmode=disable`, plain],
  [`${server}?sslmode=require`, encrypted],
  [`${server}?sslmode=prefer`, encrypted],
  [`${server}?sslmode=verify-full&${known}`, encrypted],
  [`${unnamed}?sslmode=verify-ca&${known}`, encrypted],
  [`${unnamed}?sslmode=require&${known}`, encrypted],
  [`${unnamed}?sslmode=verify-full&${known}`, /does not match certificate's altnames/],
  [`${server}?sslmode=verify-full&${unknown}`, unverified],
  [`${server}?sslmode=verify-ca&${unknown}`, unverified],
  [`${server}?sslmode=require&${unknown}`, unverified],
  [`${server}?sslmode=verify-full`, unverified],
  ["postgres:postgres@/postgres?host=FOLDER&port=PORT", /^postgres plain local/],
  ["postgres:postgres@/postgres?host=FOLDER/none&port=PORT", /ENOENT/]
] as const

it.live.skipIf(spawnSync("openssl", ["version"]).status !== 0)(
  "a connection is encrypted and verified as sslmode says, or goes over a Unix socket",
  () =>
    Effect.gen(function* () {
      const { folder, port } = yield* start
      for (const [rest, expected] of sessions) {
        const url = `postgres://${rest}`.replaceAll("PORT", port).replaceAll("FOLDER", folder)
        const found = yield* Effect.flatMap(
          clientOf(url),
          (sql) => sql<{ is: string }>`
            select concat_ws(' ', current_user, case when ssl then 'encrypted' else 'plain' end,
              case when inet_server_addr() is null then 'local' end) as is
            from pg_stat_ssl where pid = pg_backend_pid()`
        ).pipe(
          Effect.map(([row]) => row?.is ?? ""),
          Effect.catchTag("SqlError", (error) => Effect.succeed(sqlMessage(error))),
          Effect.scoped
        )
        assert.match(found, expected, rest)
      }
    })
)
