/**
 * The URL of a Postgres as libpq reads it: several hosts, sockets and parameters. See "Connection URIs" and "Parameter
 * Key Words" in the documentation of Postgres. Errors are words without a secret.
 */
import { type Config, Duration, Record, Redacted, Result } from "effect"
import * as Variable from "../process/Variable.ts"

/** A server. A host that begins with a slash is the folder of a Unix socket. */
export interface Host {
  readonly host: string
  readonly port: number
}

const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const
const targets = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"] as const

/** The variables of libpq that stand in for a parameter that a URL lacks. */
export const environment = {
  user: "PGUSER",
  password: "PGPASSWORD",
  passfile: "PGPASSFILE",
  sslmode: "PGSSLMODE",
  sslrootcert: "PGSSLROOTCERT",
  sslcert: "PGSSLCERT",
  sslkey: "PGSSLKEY"
} as const

/** The name of a parameter for a message: a long or strange one may be a secret in the wrong place. */
const shown = (name: string) => (/^[\w.-]{1,32}$/.test(name) ? name : "(an odd name)")

/** The servers: the parameters `host` and `port` are lists, which take the place of the authority's. */
const hostsOf = (authority: string, host: string | undefined, port: string | undefined) =>
  Result.gen(function* () {
    const listed = authority.split(",").map((text) => /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([^:]*))?$/.exec(text))
    if (listed.includes(null)) return yield* Result.fail("a host is wrong; an IPv6 address stands in brackets")
    const names = host?.split(",") ?? listed.map((match) => decodeURIComponent(match?.[1] ?? match?.[2] ?? ""))
    const ports = port?.split(",") ?? (host === undefined ? listed.map((match) => match?.[3] ?? "") : [""])
    if (ports.length !== 1 && ports.length !== names.length) {
      return yield* Result.fail("there are not as many ports as hosts")
    }
    const numbers = ports.map((text) => (text === "" ? 5432 : /^\d+$/.test(text) ? Number(text) : 0))
    if (!numbers.every((number) => number >= 1 && number <= 65_535)) {
      return yield* Result.fail("a port is not a number from 1 to 65535")
    }
    const [first, ...others] = names.map((name, at): Host => ({ host: name, port: numbers[at] ?? numbers[0] ?? 5432 }))
    return first === undefined || names.includes("")
      ? yield* Result.fail("a host is missing; a Unix socket is named by its folder, as in ?host=/run/postgresql")
      : ([first, ...others] as const)
  })

const oneOf = <A extends string>(name: string, values: ReadonlyArray<A>, given: string | undefined) => {
  const allowed = values.find((value) => value === given)
  return given === undefined || allowed !== undefined
    ? Result.succeed(allowed)
    : Result.fail(`${name} is not one of ${values.join(", ")}`)
}

const secret = (given: string | undefined) => (given === undefined ? undefined : Redacted.make(given))

/** Reads a URL. The defaults are values of the parameters that it lacks, by their names. */
export const parse = (text: string, defaults: Readonly<Record<string, string>> = {}) =>
  Result.gen(function* () {
    const parts = /^postgres(?:ql)?:\/\/(?:([^/?:]*)(?::([^/?]*))?@)?([^/?@]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(text)
    if (parts === null) return yield* Result.fail("it does not begin with postgres://")
    // Its parts decode if the whole does.
    yield* Result.try({ try: () => decodeURIComponent(text), catch: () => "its percent-encoding is wrong" })
    const [user = "", password = "", authority = "", dbname = "", query = ""] = parts.slice(1)
    const { ssl, ...parameters } = Object.fromEntries(new URLSearchParams(query.replaceAll("+", "%2B")))
    const named = {
      user: decodeURIComponent(user),
      password: decodeURIComponent(password),
      dbname: decodeURIComponent(dbname),
      sslmode: ssl === "true" ? "require" : "",
      ...parameters
    }
    const given = new Map(Object.entries({ ...defaults, ...Record.filter(named, (value) => value !== "") }))
    const take = (name: string) => {
      const value = given.get(name)
      given.delete(name)
      return value
    }
    const sslRootCert = take("sslrootcert")
    const mode = yield* oneOf("sslmode", sslModes, take("sslmode"))
    if (sslRootCert === "system" && mode !== undefined && mode !== "verify-full") {
      return yield* Result.fail("sslrootcert=system needs sslmode=verify-full")
    }
    const seconds = take("connect_timeout") ?? "0"
    if (!/^\d{1,4}$/.test(seconds)) return yield* Result.fail("connect_timeout is not a number of seconds below 10000")
    return {
      /** In the order of preference. */
      hosts: yield* hostsOf(authority, take("host"), take("port")),
      user: take("user"),
      password: secret(take("password")),
      database: take("dbname"),
      sslMode: mode ?? (sslRootCert === "system" ? "verify-full" : "prefer"),
      /** A file of certificate authorities, or `system`. */
      sslRootCert,
      sslCert: take("sslcert"),
      sslKey: take("sslkey"),
      sslPassword: secret(take("sslpassword")),
      sessionAttributes: (yield* oneOf("target_session_attrs", targets, take("target_session_attrs"))) ?? "any",
      // Zero is no limit for libpq. Nothing here waits that long.
      connectTimeout: Number(seconds) === 0 ? undefined : Duration.seconds(Number(seconds)),
      applicationName: take("application_name"),
      /** Options for the server's command line, such as `-c search_path=app`. */
      options: take("options")?.replaceAll("+", " "),
      passwordFile: take("passfile"),
      /** True where a pooler may give each transaction another session: `pgbouncer`, which Prisma reads as well. */
      sharesSessions: (yield* oneOf("pgbouncer", ["true", "false"], take("pgbouncer"))) === "true",
      /** Parameters that are not supported. The last field, since the others take theirs. */
      ignored: [...given.keys()].map(shown)
    }
  })

export type ConnectionUrl = Result.Result.Success<ReturnType<typeof parse>>

export const isSocket = ({ host }: Host) => host.startsWith("/")

/** A server for people, such as `db.example.com:5432`, or the file of its socket. */
export const formatHost = ({ host, port }: Host) =>
  isSocket({ host, port }) ? `${host}/.s.PGSQL.${port}` : `${host.includes(":") ? `[${host}]` : host}:${port}`

/** A URL without its password and parameters, for people. */
export const format = ({ database = "", hosts, user }: Pick<ConnectionUrl, "database" | "hosts" | "user">) =>
  `postgres://${user === undefined ? "" : `${user}@`}${hosts.map(formatHost).join(",")}/${database}`

/** A variable that holds a URL. */
export const variable = (name: string): Config.Config<Redacted.Redacted> =>
  Variable.checked(name, (text) =>
    Result.mapBoth(parse(text), {
      onSuccess: () => Redacted.make(text),
      onFailure: (reason) => `expected a URL such as postgres://user:password@host:5432/database, but ${reason}`
    })
  )
