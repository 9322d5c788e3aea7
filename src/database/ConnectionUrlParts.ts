/** The parts of the URL of a Postgres, as libpq takes it apart. An error says what is wrong in words without a secret. */
import { Result } from "effect"

/** A server. A host that begins with a slash is the folder of a Unix socket. */
export interface Host {
  readonly host: string
  readonly port: number
}

/** The hosts of the authority with the texts of their ports, and the parameters, in which user, password and dbname are. */
export interface Parts {
  readonly authority: ReadonlyArray<{ readonly host: string; readonly port: string }>
  readonly parameters: ReadonlyMap<string, string>
}

type Read<A> = Result.Result<A, string>

const decode = (text: string, what: string): Read<string> =>
  Result.try({ try: () => decodeURIComponent(text), catch: () => `the percent-encoding of ${what} is wrong` })

/** A name of a parameter for a message: what is long or strange may be a secret in the wrong place. */
export const shown = (name: string) => (/^[\w.-]{1,32}$/.test(name) ? name : "(an odd name)")

const parameter = (pair: string) =>
  Result.gen(function* () {
    const at = pair.indexOf("=")
    if (at === -1) return yield* Result.fail("a parameter lacks its =")
    const name = yield* decode(pair.slice(0, at), "a parameter's name")
    const value = pair.slice(at + 1)
    // Only here may a plus be a space: so do most languages write a query, and options are words between spaces.
    const text = name === "options" ? value.replaceAll("+", " ") : value
    return [name, yield* decode(text, `the parameter ${shown(name)}`)] as const
  })

const hostText = (text: string) =>
  Result.gen(function* () {
    const [, bracketed, plain, port = ""] = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::([^:]*))?$/.exec(text) ?? []
    const host = bracketed ?? plain
    if (host === undefined) return yield* Result.fail("a host is wrong; an IPv6 address stands in brackets")
    return { host: yield* decode(host, "a host"), port }
  })

/** The parts of a text. */
export const split = (text: string): Read<Parts> =>
  Result.gen(function* () {
    const [, authority, path = "", query = ""] =
      /^postgres(?:ql)?:\/\/([^/?]*)(?:\/([^?]*))?(?:\?(.*))?$/s.exec(text) ?? []
    if (authority === undefined) return yield* Result.fail("it does not begin with postgres://")
    const at = authority.lastIndexOf("@")
    const login = at === -1 ? "" : authority.slice(0, at)
    const colon = login.includes(":") ? login.indexOf(":") : login.length
    const named = [
      ["user", yield* decode(login.slice(0, colon), "the user")],
      ["password", yield* decode(login.slice(colon + 1), "the password")],
      ["dbname", yield* decode(path, "the database")]
    ] as const
    const pairs = query.split("&").filter((pair) => pair !== "")
    const parameters = yield* Result.all(pairs.map(parameter))
    return {
      authority: yield* Result.all(
        authority
          .slice(at + 1)
          .split(",")
          .map(hostText)
      ),
      parameters: new Map([...named, ...parameters].filter(([, value]) => value !== ""))
    }
  })

const portOf = (text: string): Read<number> => {
  const port = text === "" ? 5432 : Number(text)
  return /^\d*$/.test(text) && port >= 1 && port <= 65_535
    ? Result.succeed(port)
    : Result.fail("a port is not a number from 1 to 65535")
}

/** The servers of a URL: the parameters `host` and `port` are lists, which take the place of the authority's. */
export const hostsOf = ({ authority, parameters }: Parts): Read<readonly [Host, ...Array<Host>]> =>
  Result.gen(function* () {
    const names = parameters.get("host")?.split(",") ?? authority.map(({ host }) => host)
    const ports =
      parameters.get("port")?.split(",") ?? (parameters.has("host") ? [""] : authority.map(({ port }) => port))
    if (ports.length !== 1 && ports.length !== names.length) {
      return yield* Result.fail("there are not as many ports as hosts")
    }
    if (names.includes("")) {
      return yield* Result.fail("a host is missing; a Unix socket is named by its folder, as in ?host=/run/postgresql")
    }
    const numbers = yield* Result.all(ports.map(portOf))
    const [first, ...others] = names.map((host, index) => ({ host, port: numbers[index] ?? numbers[0] ?? 5432 }))
    return first === undefined ? yield* Result.fail("a host is missing") : [first, ...others]
  })
