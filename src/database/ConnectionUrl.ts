/**
 * The URL of a Postgres as libpq reads it: several hosts, sockets and parameters. See "Connection URIs" and "Parameter
 * Key Words" in the documentation of Postgres. Errors are words without a secret.
 */
import { type Config, Duration, Redacted, Result } from "effect"
import * as Variable from "../process/Variable.ts"

/** A server. A host that begins with a slash is the folder of a Unix socket. */
export interface Host {
  readonly host: string
  readonly port: number
}

const sslModes = ["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] as const
const targets = ["any", "read-write", "read-only", "primary", "standby", "prefer-standby"] as const
const tlsVersions = ["TLSv1", "TLSv1.1", "TLSv1.2", "TLSv1.3"] as const

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

const decode = (text: string, what: string) =>
  Result.try({ try: () => decodeURIComponent(text), catch: () => `the percent-encoding of ${what} is wrong` })

/** The name of a parameter for a message: a long or strange one may be a secret in the wrong place. */
const shown = (name: string) => (/^[\w.-]{1,32}$/.test(name) ? name : "(an odd name)")

const parameterOf = (pair: string) =>
  Result.gen(function* () {
    const at = pair.indexOf("=")
    if (at === -1) return yield* Result.fail("a parameter lacks its =")
    const name = yield* decode(pair.slice(0, at), "a parameter's name")
    const value = pair.slice(at + 1)
    // Only here may a plus be a space: most languages write queries so, and options are words between spaces.
    const text = name === "options" ? value.replaceAll("+", " ") : value
    return [name, yield* decode(text, `the parameter ${shown(name)}`)] as const
  })

/** The servers: the parameters `host` and `port` are lists, which take the place of the authority's. */
const hostsOf = (authority: string, host: string | undefined, port: string | undefined) =>
  Result.gen(function* () {
    const listed = authority.split(",").map((text) => /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([^:]*))?$/.exec(text))
    if (listed.includes(null)) return yield* Result.fail("a host is wrong; an IPv6 address stands in brackets")
    const inAuthority = yield* Result.all(listed.map((match) => decode(match?.[1] ?? match?.[2] ?? "", "a host")))
    const names = host?.split(",") ?? inAuthority
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
  const found = values.find((value) => value === given)
  return given === undefined || found !== undefined
    ? Result.succeed(found)
    : Result.fail(`${name} is not one of ${values.join(", ")}`)
}

const seconds = (given: string | undefined) =>
  given === undefined || /^\d{1,4}$/.test(given)
    ? // Zero is no limit for libpq. Nothing here waits that long.
      Result.succeed(given === undefined || Number(given) === 0 ? undefined : Duration.seconds(Number(given)))
    : Result.fail("connect_timeout is not a number of seconds below 10000")

const secret = (given: string | undefined) => (given === undefined ? undefined : Redacted.make(given))

/** Reads a URL. The defaults are values of the parameters that it lacks, by their names. */
export const parse = (text: string, defaults: Readonly<Record<string, string>> = {}) =>
  Result.gen(function* () {
    const parts = /^postgres(?:ql)?:\/\/(?:([^/?:]*)(?::([^/?]*))?@)?([^/?@]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(text)
    if (parts === null) return yield* Result.fail("it does not begin with postgres://")
    const [, login = "", key = "", authority = "", path = "", query = ""] = parts
    const pairs = query.split("&").filter((pair) => pair !== "")
    const named = [
      ["user", yield* decode(login, "the user")] as const,
      ["password", yield* decode(key, "the password")] as const,
      ["dbname", yield* decode(path, "the database")] as const,
      ...(yield* Result.all(pairs.map(parameterOf)))
    ]
    const given = new Map([...Object.entries(defaults), ...named.filter(([, value]) => value !== "")])
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
    const defaultMode = take("ssl") === "true" ? "require" : "prefer"
    const pooler = yield* oneOf("pgbouncer", ["true", "false"], take("pgbouncer"))
    return {
      /** In the order of preference. */
      hosts: yield* hostsOf(authority, take("host"), take("port")),
      user: take("user"),
      password: secret(take("password")),
      database: take("dbname"),
      sslMode: mode ?? (sslRootCert === "system" ? "verify-full" : defaultMode),
      /** A file of certificate authorities, or `system`. */
      sslRootCert,
      sslCert: take("sslcert"),
      sslKey: take("sslkey"),
      sslPassword: secret(take("sslpassword")),
      minimumTls: yield* oneOf("ssl_min_protocol_version", tlsVersions, take("ssl_min_protocol_version")),
      maximumTls: yield* oneOf("ssl_max_protocol_version", tlsVersions, take("ssl_max_protocol_version")),
      sessionAttributes: (yield* oneOf("target_session_attrs", targets, take("target_session_attrs"))) ?? "any",
      connectTimeout: yield* seconds(take("connect_timeout")),
      applicationName: take("application_name"),
      /** Options for the server's command line, such as `-c search_path=app`. */
      options: take("options"),
      passwordFile: take("passfile"),
      /** True where a pooler may give each transaction another session: `pgbouncer`, which Prisma reads as well. */
      sharesSessions: pooler === undefined ? undefined : pooler === "true",
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
