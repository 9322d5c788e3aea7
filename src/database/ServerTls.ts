/** How a connection to a Postgres is encrypted, and what of its server is verified: `sslmode` and its files. */
import { readFile } from "node:fs/promises"
import { homedir } from "node:os"
import { join } from "node:path"
import { type ConnectionOptions, createSecureContext, getCACertificates } from "node:tls"
import { Data, Effect, Predicate, Redacted } from "effect"
import type { ConnectionUrl } from "./ConnectionUrl.ts"

/** What is verified: nothing, who signed the certificate, or also that it is of this host. */
export type Verification = "none" | "authority" | "host"

/** TLS as a URL wants it. */
export interface ServerTls {
  readonly verification: Verification
  readonly options: ConnectionOptions
}

/** A file of a URL cannot be used. */
export class TlsFileError extends Data.TaggedError("TlsFileError")<{ readonly message: string }> {}

const reasonOf = (cause: unknown) =>
  Predicate.hasProperty(cause, "code") ? String(cause.code) : Predicate.isError(cause) ? cause.message : String(cause)

const text = (name: string, file: string) =>
  Effect.tryPromise({
    try: () => readFile(file, "utf8"),
    catch: (cause) => new TlsFileError({ message: `${name} ${file} cannot be read: ${reasonOf(cause)}` })
  })

/** A file that may be missing unless it was named: without a name it is looked for where libpq does. */
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
  if (key === undefined) return yield* new TlsFileError({ message: "There is an sslcert, and no sslkey" })
  return { cert, key, ...(sslPassword === undefined ? {} : { passphrase: Redacted.value(sslPassword) }) }
})

/**
 * As libpq has it, a file of authorities is used in every mode, and `require` with one is `verify-ca`. Without one, the
 * modes that verify trust the authorities of Node and of NODE_EXTRA_CA_CERTS, to which anyone can turn for a
 * certificate: then `verify-ca` looks at the host as well.
 */
const verificationOf = ({ sslMode }: ConnectionUrl, hasAuthorities: boolean): Verification => {
  if (sslMode === "verify-full") return "host"
  if (sslMode === "verify-ca") return hasAuthorities ? "authority" : "host"
  return hasAuthorities ? "authority" : "none"
}

/** Reads the files of a URL. */
export const make = Effect.fnUntraced(function* (url: ConnectionUrl) {
  const ca = yield* authorities(url)
  const own = yield* certificate(url)
  const verification = verificationOf(url, ca !== undefined)
  // Made here, since whoever connects would throw where nobody catches what a damaged file gives.
  const secureContext = yield* Effect.try({
    try: () =>
      createSecureContext({
        ...own,
        ...(verification === "host" && ca === undefined ? {} : { ca: ca ?? [] }),
        minVersion: url.minimumTls ?? "TLSv1.2",
        ...(url.maximumTls === undefined ? {} : { maxVersion: url.maximumTls })
      }),
    catch: (cause) => new TlsFileError({ message: `A file of the certificates cannot be used: ${reasonOf(cause)}` })
  })
  const tls: ServerTls = {
    verification,
    options: {
      secureContext,
      rejectUnauthorized: verification !== "none",
      ...(verification === "host" ? {} : { checkServerIdentity: () => undefined })
    }
  }
  return tls
})
