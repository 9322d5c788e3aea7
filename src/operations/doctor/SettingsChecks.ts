/** Checks of the configuration. */
import { Config, ConfigProvider, Effect, Exit, Option, Redacted, Result } from "effect"
import { type Settings, variables } from "../Config.ts"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import * as OtlpConfig from "../../observability/OtlpConfig.ts"
import * as Failure from "../../process/Failure.ts"
import * as Variable from "../../process/Variable.ts"
import { isLoopback } from "../Access.ts"
import { type Check, fail, ok, type Said, warn } from "./Check.ts"

/** The text of a value: of a secret that is the URL of a Postgres, without its password and parameters. */
const shown = (value: unknown, text: string) => {
  const inner = Option.isOption(value) ? Option.getOrUndefined(value) : value
  if (!Redacted.isRedacted(inner)) return text
  return Result.match(ConnectionUrl.parse(text), { onFailure: () => "(set)", onSuccess: ConnectionUrl.format })
}

/** The name and text of a variable, and what is said of it. */
const inspect = Effect.fnUntraced(function* (setting: Config.Config<unknown>) {
  const provider = yield* ConfigProvider.ConfigProvider
  let name = ""
  let text = ""
  const recording = ConfigProvider.make((path) => {
    name = path.join("_")
    return Effect.tap(provider.load(path), (node) => Effect.sync(() => (text = node?.value ?? "")))
  })
  const value = yield* Effect.exit(setting.parse(recording))
  if (Exit.isSuccess(value)) return { name, said: text === "" ? undefined : ok(`${name}=${shown(value.value, text)}`) }
  const error = Option.getOrUndefined(Exit.findErrorOption(value))
  const message = error === undefined ? `${name} cannot be read.` : Failure.explain(error)
  return { name, said: fail(message, `Set ${name} to what is expected, or unset it.`) }
})

/** A variable that is set and that nothing reads, if its name is near to one that is read. */
const mistyped = (name: string, known: ReadonlyArray<string>): ReadonlyArray<Said> => {
  const message = `${name} is set, and nothing reads it.`
  const meant = Variable.meantBy(name, known)
  if (meant !== undefined) return [fail(message, `Rename it to ${meant}, or unset it.`)]
  const near = known.includes(name) || name.length < Variable.shortest ? undefined : Variable.nearest(name, known)
  return near === undefined ? [] : [warn(message, `If ${near} is meant, set that instead.`)]
}

/** The variables that are set, without secrets, and the mistakes in them. */
export const environment = Effect.gen(function* () {
  const found = yield* Effect.forEach(
    [...Object.values<Config.Config<unknown>>(variables), ...OtlpConfig.variables],
    inspect
  )
  const names = found.map(({ name }) => name)
  const said = found.flatMap((one) => (one.said === undefined ? [] : [one.said]))
  const slips = (yield* Variable.namesSet).flatMap((name) => mistyped(name, names))
  return [...said, ...slips, ok(`${found.length - said.length} more have their defaults.`)]
})

const ignoredParameters = (variable: string, url: Option.Option<Redacted.Redacted>): ReadonlyArray<Said> => {
  const read = Option.map(url, (text) => ConnectionUrl.parse(Redacted.value(text)))
  if (Option.isNone(read) || Result.isFailure(read.value) || read.value.success.ignored.length === 0) return []
  const names = read.value.success.ignored.slice(0, 16).join(", ")
  return [warn(`${variable} has parameters that nothing reads: ${names}.`, "Remove them.")]
}

/** The checks of settings that are valid. */
export const settingsChecks: ReadonlyArray<Check<Settings>> = [
  {
    name: "The parameters of the URLs",
    at: ["doctor", "start"],
    run: (settings) =>
      Effect.succeed([
        ...ignoredParameters("DATABASE_URL", settings.databaseUrl),
        ...ignoredParameters("READ_DATABASE_URL", settings.readDatabaseUrl),
        ...ignoredParameters("CREDENTIALS_DATABASE_URL", settings.credentialsDatabaseUrl)
      ])
  },
  {
    name: "The user of the process",
    at: ["start"],
    applies: () => process.getuid?.() === 0,
    run: () => Effect.succeed([warn("This process runs as root.", "Run it as a user of its own.")])
  },
  {
    name: "The public address",
    at: ["doctor", "start"],
    run: ({ databaseUrl, host, requireSignatures, roles }) => {
      const keys = Option.isNone(databaseUrl) ? "the public demo API keys" : "an API key"
      const deletions = requireSignatures
        ? "deletions that are signed"
        : "deletions, unsigned unless the organization has a signing secret"
      const open = [
        ...(roles.includes("data-api") ? [`reads with ${keys}`] : []),
        ...(roles.includes("intake") ? [deletions] : []),
        "health"
      ]
      const reach = isLoopback(host) ? "this machine alone" : `every machine that reaches ${host}`
      return Effect.succeed([ok(`Open to ${reach}: ${open.join("; ")}`)])
    }
  },
  {
    name: "The operators' listener",
    at: ["doctor"],
    applies: ({ operationsHost, operationsPort }) => !isLoopback(operationsHost) && Option.isSome(operationsPort),
    run: ({ operationsHost: host, operationsToken }) =>
      Effect.succeed([
        Option.isNone(operationsToken)
          ? warn(
              `OPERATIONS_HOST=${host} lets other machines read /metrics and /health of the operators' listener, and there is no OPERATIONS_TOKEN: nobody sees its page.`,
              "Set OPERATIONS_TOKEN, or unset OPERATIONS_HOST and reach the page through ssh -L."
            )
          : warn(
              `OPERATIONS_HOST=${host} lets other machines read /metrics and /health without a token, and the token travels in plain HTTP.`,
              "Let only monitors and a proxy with TLS reach this port."
            )
      ])
  }
]
