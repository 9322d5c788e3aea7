/** Encryption of connections to a Postgres, and verification of its server: `sslmode` and its files. */
import { readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { type ConnectionOptions, createSecureContext, getCACertificates } from "node:tls"
import { Effect, Predicate, Redacted } from "effect"
import type { ConnectionUrl } from "./ConnectionUrl.ts"
import { connectFailure } from "./SqlFailure.ts"

const reasonOf = (cause: unknown) =>
  Predicate.hasProperty(cause, "code") ? String(cause.code) : Predicate.isError(cause) ? cause.message : String(cause)

const text = (name: string, file: string) =>
  Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: (cause) => connectFailure(`${name} ${file} cannot be read: ${reasonOf(cause)}`)
  })

/** The text of a file. Without a name it is the one of libpq, which may be missing. */
const optional = (name: string, given: string | undefined, otherwise: string) =>
  given === undefined
    ? Effect.orElseSucceed(text(name, join(homedir(), ".postgresql", otherwise)), () => undefined)
    : text(name, given)

const authorities = ({ sslRootCert }: ConnectionUrl) =>
  sslRootCert === "system"
    ? Effect.sync((): string | Array<string> | undefined => getCACertificates("system"))
    : optional("sslrootcert", sslRootCert, "root.crt")

const certificate = Effect.fnUntraced(function* ({ sslCert, sslKey, sslPassword }: ConnectionUrl) {
  const cert = yield* optional("sslcert", sslCert, "postgresql.crt")
  if (cert === undefined) return {}
  const key = yield* optional("sslkey", sslKey, "postgresql.key")
  if (key === undefined) return yield* connectFailure("There is an sslcert, and no sslkey")
  return { cert, key, ...(sslPassword === undefined ? {} : { passphrase: Redacted.value(sslPassword) }) }
})

/**
 * The verified part of a certificate: none, its authority, or its host as well.
 *
 * As for libpq, a file of authorities is used in every mode, and `require` with one is `verify-ca`. Without one, the
 * modes that verify trust the authorities of Node and of NODE_EXTRA_CA_CERTS. Anyone can get a certificate from these, so
 * `verify-ca` then verifies the host as well.
 */
const verificationOf = ({ sslMode }: ConnectionUrl, hasAuthorities: boolean): "none" | "authority" | "host" => {
  if (sslMode === "verify-full") return "host"
  if (hasAuthorities) return "authority"
  return sslMode === "verify-ca" ? "host" : "none"
}

/** Reads the files of a URL. */
export const make = Effect.fnUntraced(function* (url: ConnectionUrl) {
  const ca = yield* authorities(url)
  const own = yield* certificate(url)
  const verification = verificationOf(url, ca !== undefined)
  // Made here: a damaged file would otherwise throw at a connection, where nothing catches it.
  const secureContext = yield* Effect.try({
    try: () =>
      createSecureContext({
        ...own,
        ...(verification === "host" && ca === undefined ? {} : { ca: ca ?? [] }),
        minVersion: url.minimumTls ?? "TLSv1.2",
        ...(url.maximumTls === undefined ? {} : { maxVersion: url.maximumTls })
      }),
    catch: (cause) => connectFailure(`A file of the certificates cannot be used: ${reasonOf(cause)}`)
  })
  const options: ConnectionOptions = {
    secureContext,
    rejectUnauthorized: verification !== "none",
    ...(verification === "host" ? {} : { checkServerIdentity: () => undefined })
  }
  return { verification, options }
})

export type ServerTls = Effect.Success<ReturnType<typeof make>>
