/** Encryption of connections to a Postgres, and verification of its server: `sslmode` and its files. */
import { existsSync, readFileSync } from "node:fs"
import { homedir } from "node:os"
import { join } from "node:path"
import { type ConnectionOptions, createSecureContext, getCACertificates } from "node:tls"
import { Effect, Predicate, Redacted } from "effect"
import type { ConnectionUrl } from "./ConnectionUrl.ts"
import { connectFailure } from "./SqlFailure.ts"

/** The text of a file. Without a name it is the one of libpq, which may be missing. */
const textOf = (given: string | undefined, otherwise: string) => {
  const file = given ?? join(homedir(), ".postgresql", otherwise)
  return given === undefined && !existsSync(file) ? undefined : readFileSync(file, "utf8")
}

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

const read = (url: ConnectionUrl) => {
  const { sslCert, sslKey, sslPassword, sslRootCert } = url
  const ca = sslRootCert === "system" ? getCACertificates("system") : textOf(sslRootCert, "root.crt")
  const cert = textOf(sslCert, "postgresql.crt")
  const key = cert === undefined ? undefined : textOf(sslKey, "postgresql.key")
  if (cert !== undefined && key === undefined) throw new Error("there is an sslcert, and no sslkey")
  const verification = verificationOf(url, ca !== undefined)
  const options: ConnectionOptions = {
    // Made here: a damaged file would otherwise throw at a connection, where nothing catches it.
    secureContext: createSecureContext({
      ...(cert !== undefined && key !== undefined && { cert, key }),
      ...(sslPassword !== undefined && { passphrase: Redacted.value(sslPassword) }),
      ...(verification === "host" && ca === undefined ? {} : { ca: ca ?? [] })
    }),
    rejectUnauthorized: verification !== "none",
    ...(verification === "host" ? {} : { checkServerIdentity: () => undefined })
  }
  return { verification, options }
}

/** Reads the files of a URL. */
export const make = (url: ConnectionUrl) =>
  Effect.try({
    try: () => read(url),
    catch: (cause) =>
      connectFailure(
        `The certificates of the URL cannot be used: ${Predicate.isError(cause) ? cause.message : String(cause)}`
      )
  })

export type ServerTls = Effect.Success<ReturnType<typeof make>>
