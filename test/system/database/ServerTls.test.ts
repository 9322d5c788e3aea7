/**
 * Connections to a Postgres that has TLS on, with certificates of an authority that nobody knows, and over its socket.
 *
 * @module-tag long
 */
import { execFileSync } from "node:child_process"
import { chmodSync, chownSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { ConfigProvider, Context, Effect, Layer, Redacted } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect } from "../../../src/database/Database.ts"
import { messageOf } from "../../../src/database/SqlFailure.ts"
import * as Certificates from "../../support/Certificates.ts"
import * as LocalPostgres from "../../support/LocalPostgres.ts"

const hba = `
local all all scram-sha-256
hostssl all certified all cert
hostnossl all unencrypted all scram-sha-256
hostssl all encrypted all scram-sha-256
host all postgres all scram-sha-256
`

interface Server {
  readonly folder: string
  readonly port: string
}

class TlsPostgres extends Context.Service<TlsPostgres, Server>()(
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
      const put = (name: string, text: string) => writeFileSync(join(folder, name), text)
      Certificates.authority(folder, "authority")
      Certificates.authority(folder, "stranger")
      const server = Certificates.signed(folder, "authority", "server", "localhost")
      Certificates.signed(folder, "authority", "certified")
      Certificates.encrypted(folder, "certified", "of the key")
      put("hba.conf", hba)
      put("passwords", "# of the test\n*:*:*:postgres:postgres\n")
      chmodSync(join(folder, "passwords"), 0o600)
      put("open", "*:*:*:postgres:postgres\n")
      chmodSync(server.key, 0o600)
      chownSync(server.key, owner.uid, owner.gid)
      chownSync(folder, owner.uid, owner.gid)
      const { url } = yield* LocalPostgres.make({
        folder: data,
        settings: {
          ssl: "on",
          ssl_cert_file: server.certificate,
          ssl_key_file: server.key,
          ssl_ca_file: join(folder, "authority.crt"),
          hba_file: join(folder, "hba.conf"),
          unix_socket_directories: folder
        }
      })
      const { port } = new URL(url)
      for (const role of ["certified", "unencrypted", "encrypted"]) {
        yield* asked(`${url}?sslmode=require`, `create role ${role} login password 'postgres'`)
      }
      return { folder, port }
    })
  ).pipe(Layer.provide(Reactivity.layer))
}

const open = (url: string) =>
  connect({
    url: Redacted.make(url),
    applicationName: "practice-data-test",
    maxConnections: 1,
    statementTimeout: "5 seconds"
  })

const asked = (url: string, statement: string) =>
  Effect.scoped(
    Effect.gen(function* () {
      const sql = yield* open(url)
      return yield* sql.unsafe(statement)
    })
  )

interface Session {
  readonly login: string
  readonly is_encrypted: boolean
  readonly is_local: boolean
  readonly application: string
}

/** What the session of a URL is, or why there is none; the URL without `postgres://`, with the port and folder put in. */
const session = Effect.fnUntraced(function* (rest: string, environment: Readonly<Record<string, string>> = {}) {
  const { folder, port } = yield* TlsPostgres
  const put = (text: string) => text.replaceAll("PORT", port).replaceAll("FOLDER", folder)
  const env = Object.fromEntries(Object.entries(environment).map(([name, value]) => [name, put(value)]))
  return yield* Effect.scoped(
    Effect.gen(function* () {
      const sql = yield* open(put(`postgres://${rest}`))
      const [row] = yield* sql<Session>`
        select current_user as login, ssl as is_encrypted, inet_server_addr() is null as is_local,
          current_setting('application_name') as application
        from pg_stat_ssl where pid = pg_backend_pid()`
      return row
    })
  ).pipe(
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env })),
    Effect.catchTag("SqlError", (error) => Effect.succeed(messageOf(error))),
    Effect.provide(Reactivity.layer)
  )
})

const isEncrypted = Effect.fnUntraced(function* (expected: boolean, rest: string) {
  const found = yield* session(rest)
  assert.strictEqual(typeof found === "object" ? found.is_encrypted : found, expected, rest)
})

const isRefused = Effect.fnUntraced(function* (reason: RegExp, rest: string) {
  const found = yield* session(rest)
  assert.match(typeof found === "string" ? found : "not refused", reason, rest)
})

layer(TlsPostgres.layer, { excludeTestServices: true })("To a Postgres with TLS a connection", (it) => {
  const can = Certificates.canMake ? it.effect : it.effect.skip

  can("is encrypted as sslmode says, and by default where the server can", () =>
    Effect.gen(function* () {
      const server = "postgres:postgres@localhost:PORT/postgres"
      yield* isEncrypted(true, server)
      yield* isEncrypted(false, `${server}?sslmode=disable`)
      yield* isEncrypted(false, `${server}?sslmode=allow`)
      yield* isEncrypted(true, `${server}?sslmode=prefer`)
      yield* isEncrypted(true, `${server}?sslmode=require`)
      yield* isEncrypted(true, `${server}?ssl=true`)
      yield* isEncrypted(true, `${server}?sslmode=require&ssl_min_protocol_version=TLSv1.3`)
    })
  )

  can("is tried in the other way where the server refuses a login the first one", () =>
    Effect.gen(function* () {
      yield* isEncrypted(false, "unencrypted:postgres@localhost:PORT/postgres")
      yield* isRefused(/no pg_hba.conf entry/, "unencrypted:postgres@localhost:PORT/postgres?sslmode=require")
      yield* isEncrypted(true, "encrypted:postgres@localhost:PORT/postgres?sslmode=allow")
      yield* isRefused(/no encryption/, "encrypted:postgres@localhost:PORT/postgres?sslmode=disable")
      yield* isRefused(/password authentication failed/, "encrypted:wrong@localhost:PORT/postgres")
    })
  )

  can("verifies who signed the certificate, and the name of the host", () =>
    Effect.gen(function* () {
      const named = "postgres:postgres@localhost:PORT/postgres"
      const unnamed = "postgres:postgres@127.0.0.1:PORT/postgres"
      const known = "sslrootcert=FOLDER/authority.crt"
      const unknown = "sslrootcert=FOLDER/stranger.crt"
      yield* isEncrypted(true, `${named}?sslmode=verify-full&${known}`)
      yield* isEncrypted(true, `${unnamed}?sslmode=verify-ca&${known}`)
      yield* isEncrypted(true, `${unnamed}?sslmode=require&${known}`)
      yield* isRefused(/does not match certificate's altnames/, `${unnamed}?sslmode=verify-full&${known}`)
      yield* isRefused(/unable to verify|self.signed|unable to get/, `${named}?sslmode=verify-full&${unknown}`)
      yield* isRefused(/unable to verify|self.signed|unable to get/, `${named}?sslmode=verify-ca&${unknown}`)
      yield* isRefused(/unable to verify|self.signed|unable to get/, `${named}?sslmode=require&${unknown}`)
      yield* isRefused(/unable to verify|self.signed|unable to get/, `${named}?sslmode=verify-full`)
      yield* isRefused(/unable to verify|self.signed|unable to get/, `${named}?sslmode=verify-ca`)
      yield* isRefused(/unable to verify|self.signed|unable to get/, `${named}?sslrootcert=system`)
      yield* isEncrypted(false, `${named}?sslmode=prefer&${unknown}`)
    })
  )

  can("tells of files that are missing or damaged, and never goes on without them", () =>
    Effect.gen(function* () {
      const server = "postgres:postgres@localhost:PORT/postgres?sslmode=verify-full"
      yield* isRefused(/sslrootcert .+none.crt cannot be read: ENOENT/, `${server}&sslrootcert=FOLDER/none.crt`)
      yield* isRefused(
        /certificates cannot be used/,
        `${server}&sslrootcert=FOLDER/authority.crt&sslcert=FOLDER/hba.conf&sslkey=FOLDER/hba.conf`
      )
      yield* isRefused(/no sslkey/, `${server}&sslrootcert=FOLDER/authority.crt&sslcert=FOLDER/certified.crt`)
    })
  )

  can("shows the certificate of the client", () =>
    Effect.gen(function* () {
      const server = "certified@localhost:PORT/postgres?sslmode=verify-full&sslrootcert=FOLDER/authority.crt"
      const own = "sslcert=FOLDER/certified.crt"
      yield* isEncrypted(true, `${server}&${own}&sslkey=FOLDER/certified.key`)
      yield* isEncrypted(true, `${server}&${own}&sslkey=FOLDER/certified.encrypted.key&sslpassword=of%20the%20key`)
      yield* isRefused(/certificates cannot be used/, `${server}&${own}&sslkey=FOLDER/certified.encrypted.key`)
      yield* isRefused(/requires a valid client certificate/, server)
    })
  )

  can("goes over a Unix socket", () =>
    Effect.gen(function* () {
      const { folder } = yield* TlsPostgres
      const rests = [
        "postgres:postgres@/postgres?host=FOLDER&port=PORT",
        "/postgres?host=FOLDER&port=PORT&user=postgres&password=postgres&sslmode=require",
        `postgres:postgres@${encodeURIComponent(folder)}:PORT/postgres`
      ]
      for (const rest of rests) {
        const found = yield* session(rest)
        assert.deepInclude(found, { login: "postgres", is_local: true, is_encrypted: false }, rest)
      }
      yield* isRefused(/ENOENT/, "postgres:postgres@/postgres?host=FOLDER/none&port=PORT")
    })
  )

  can("takes its password from a file, and what the URL lacks from the variables of libpq", () =>
    Effect.gen(function* () {
      const server = "postgres@localhost:PORT/postgres"
      yield* isEncrypted(true, `${server}?passfile=FOLDER/passwords`)
      yield* isRefused(/password/, server)
      // libpq reads no file that others may read.
      yield* isRefused(/password/, `${server}?passfile=FOLDER/open`)
      assert.deepInclude(yield* session(server, { PGPASSFILE: "FOLDER/passwords" }), { is_encrypted: true })
      const variables = { PGPASSWORD: "postgres", PGSSLMODE: "disable", PGUSER: "postgres" }
      assert.deepInclude(yield* session("localhost:PORT/postgres", variables), { is_encrypted: false })
      assert.deepInclude(yield* session(`${server}?sslmode=require`, variables), { is_encrypted: true })
      const unverified = { PGPASSWORD: "postgres", PGSSLROOTCERT: "FOLDER/stranger.crt", PGSSLMODE: "verify-ca" }
      const refusal = yield* session(server, unverified)
      assert.match(typeof refusal === "string" ? refusal : "not refused", /unable|self.signed/)
      const named = yield* session(`postgres:postgres@localhost:PORT/postgres?application_name=of%20mine`)
      assert.deepInclude(named, { application: "of mine" })
    })
  )

  can("cancels a statement that is not waited for, encrypted as well", () =>
    Effect.gen(function* () {
      const { folder, port } = yield* TlsPostgres
      const url = `postgres://postgres:postgres@localhost:${port}/postgres?sslmode=verify-full&sslrootcert=${folder}/authority.crt`
      const sql = yield* open(url)
      yield* sql`select pg_sleep(60)`.pipe(Effect.timeout("200 millis"), Effect.ignore)
      const [row] = yield* sql<{ count: number }>`
        select count(*)::int from pg_stat_activity where state = 'active' and query like '%sleep(60)' and pid <> pg_backend_pid()`
      assert.strictEqual(row?.count, 0)
    }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
  )

  can("agrees with psql about each mode", () =>
    Effect.gen(function* () {
      const { folder, port } = yield* TlsPostgres
      const psql = (url: string) => {
        try {
          const text = execFileSync(
            "psql",
            ["-XAtc", "select ssl from pg_stat_ssl where pid = pg_backend_pid()", url],
            {
              stdio: ["ignore", "pipe", "ignore"],
              env: { ...process.env, HOME: folder }
            }
          )
          return text.toString().trim() === "t"
        } catch {
          return "refused"
        }
      }
      if (psql(`postgres://postgres:postgres@localhost:${port}/postgres`) === "refused") return
      const modes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"]
      const roots = ["", "&sslrootcert=FOLDER/authority.crt", "&sslrootcert=FOLDER/stranger.crt"]
      for (const rest of modes.flatMap((mode) => roots.map((root) => `sslmode=${mode}${root}`))) {
        const url = `postgres:postgres@127.0.0.1:${port}/postgres?${rest}`
        const ours = yield* session(url)
        const theirs = psql(`postgres://${url.replace("FOLDER", folder)}`)
        assert.strictEqual(typeof ours === "object" ? ours.is_encrypted : "refused", theirs, url)
      }
    })
  )
})
