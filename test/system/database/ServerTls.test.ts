/**
 * Connections to a Postgres that has TLS on, with certificates of an authority that nobody knows, and over its socket.
 *
 * @module-tag long
 */
import { execFileSync, spawnSync } from "node:child_process"
import { chmodSync, chownSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { messageOf } from "../../../src/database/SqlFailure.ts"
import * as LocalPostgres from "../../support/LocalPostgres.ts"
import { clientOf } from "../../support/TestDatabase.ts"

const canMakeCertificates = spawnSync("openssl", ["version"]).status === 0

/** Makes authorities, and certificates that they have signed. */
const certificatesIn = (folder: string) => {
  /** Runs a command line without blanks in its words. */
  const openssl = (line: string) =>
    execFileSync("openssl", line.split(" "), { cwd: folder, stdio: ["ignore", "ignore", "pipe"] })
  const newKey = "-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes"
  for (const name of ["authority", "stranger"]) {
    openssl(`req -x509 ${newKey} -days 2 -subj /CN=${name} -keyout ${name}.key -out ${name}.crt`)
  }
  openssl(`req ${newKey} -subj /CN=server -keyout server.key -out server.csr`)
  writeFileSync(join(folder, "extensions"), "subjectAltName=DNS:localhost")
  const by = "-CA authority.crt -CAkey authority.key -CAcreateserial -days 2"
  openssl(`x509 -req ${by} -in server.csr -extfile extensions -out server.crt`)
}

class TlsPostgres extends Context.Service<TlsPostgres, { readonly folder: string; readonly port: string }>()(
  "practice-data/test/system/database/ServerTls/TlsPostgres"
) {
  static readonly layer = Layer.effect(
    TlsPostgres,
    Effect.gen(function* () {
      const folder = yield* LocalPostgres.enterableFolder
      const data = join(folder, "data")
      // Its owner is known when it is made.
      yield* Effect.scoped(LocalPostgres.make({ folder: data }))
      const owner = statSync(data)
      certificatesIn(folder)
      const key = join(folder, "server.key")
      chmodSync(key, 0o600)
      for (const path of [key, folder]) chownSync(path, owner.uid, owner.gid)
      const { url } = yield* LocalPostgres.make({
        folder: data,
        settings: {
          ssl: "on",
          ssl_cert_file: join(folder, "server.crt"),
          ssl_key_file: key,
          unix_socket_directories: folder
        }
      })
      const { port } = new URL(url)
      return { folder, port }
    })
  )
}

/** The session of a URL, or the reason why there is none; the URL without `postgres://`, with the port and folder put in. */
const session = Effect.fnUntraced(function* (rest: string) {
  const { folder, port } = yield* TlsPostgres
  return yield* clientOf(`postgres://${rest}`.replaceAll("PORT", port).replaceAll("FOLDER", folder)).pipe(
    Effect.flatMap(
      (sql) => sql<{ is: string }>`
        select concat_ws(' ', current_user, case when ssl then 'encrypted' else 'plain' end,
          case when inet_server_addr() is null then 'local' end) as is
        from pg_stat_ssl where pid = pg_backend_pid()`
    ),
    Effect.map(([row]) => row?.is ?? ""),
    Effect.catchTag("SqlError", (error) => Effect.succeed(messageOf(error))),
    Effect.scoped
  )
})

const encrypted = /^\w+ encrypted$/
const plain = /^\w+ plain$/
const unverified = /unable to verify|self.signed|unable to get/

const server = "postgres:postgres@localhost:PORT/postgres"
const unnamed = "postgres:postgres@127.0.0.1:PORT/postgres"
const known = "sslrootcert=FOLDER/authority.crt"
const unknown = "sslrootcert=FOLDER/stranger.crt"

const cases: Readonly<Record<string, ReadonlyArray<readonly [rest: string, found: RegExp]>>> = {
  "is encrypted as sslmode says": [
    [server, plain],
    [`${server}?sslmode=disable`, plain],
    [`${server}?sslmode=require`, encrypted],
    [`${server}?sslmode=prefer`, encrypted]
  ],
  "verifies the authority of the certificate, and the name of the host": [
    [`${server}?sslmode=verify-full&${known}`, encrypted],
    [`${unnamed}?sslmode=verify-ca&${known}`, encrypted],
    [`${unnamed}?sslmode=require&${known}`, encrypted],
    [`${unnamed}?sslmode=verify-full&${known}`, /does not match certificate's altnames/],
    [`${server}?sslmode=verify-full&${unknown}`, unverified],
    [`${server}?sslmode=verify-ca&${unknown}`, unverified],
    [`${server}?sslmode=require&${unknown}`, unverified],
    [`${server}?sslmode=verify-full`, unverified]
  ],
  "goes over a Unix socket": [
    ["postgres:postgres@/postgres?host=FOLDER&port=PORT", /^postgres plain local/],
    ["postgres:postgres@/postgres?host=FOLDER/none&port=PORT", /ENOENT/]
  ]
}

layer(TlsPostgres.layer, { excludeTestServices: true })("To a Postgres with TLS a connection", (it) => {
  const can = canMakeCertificates ? it.effect : it.effect.skip

  for (const [name, rows] of Object.entries(cases)) {
    can(name, () =>
      Effect.forEach(rows, ([rest, found]) => Effect.map(session(rest), (text) => assert.match(text, found, rest)))
    )
  }
})
