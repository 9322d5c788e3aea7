/** Checks of the configuration. */
import { Config, Effect, Option, Redacted, Result } from "effect"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import * as OtlpConfig from "../../observability/OtlpConfig.ts"
import * as Failure from "../../process/Failure.ts"
import * as Variable from "../../process/Variable.ts"
import { isLoopback, type Settings, variables } from "../Config.ts"
import { type Fact, fail, facts, ok, warn } from "./Check.ts"

/** The text of a value: of a secret that is the URL of a Postgres, without its password and parameters. */
const shown = (value: unknown, text: string) => {
  const inner = Option.isOption(value) ? Option.getOrUndefined(value) : value
  if (!Redacted.isRedacted(inner)) return text
  return Result.match(ConnectionUrl.parse(text), { onFailure: () => "(set)", onSuccess: ConnectionUrl.format })
}

/** The name of a variable, and its fact unless it is unset. */
const inspect = Effect.fnUntraced(function* (setting: Config.Config<unknown>) {
  const [name = ""] = yield* Variable.namesOf(setting)
  const text = yield* Config.withDefault(Config.String(name), "")
  const value = yield* Effect.result(setting)
  if (Result.isSuccess(value)) return { name, set: text === "" ? [] : [ok(`${name}=${shown(value.success, text)}`)] }
  return { name, set: [fail(Failure.explain(value.failure), `Set ${name} to what is expected, or unset it.`)] }
})

/** The variables that are set, without secrets, and the mistakes in them. */
export const environment = Effect.gen(function* () {
  const settings: ReadonlyArray<Config.Config<unknown>> = [...Object.values(variables), ...OtlpConfig.variables]
  const found = yield* Effect.forEach(settings, inspect)
  const set = found.flatMap((one) => one.set)
  const names = found.map(({ name }) => name)
  const slips = (yield* Variable.namesSet).flatMap((name) => {
    const meant = Variable.meantBy(name, names)
    return meant === undefined ? [] : [fail(`${name} is set, and nothing reads it.`, `If ${meant} is meant, set that.`)]
  })
  return [...set, ...slips, ok(`${found.length - set.length} more have their defaults.`)]
})

const urls = {
  DATABASE_URL: "databaseUrl",
  READ_DATABASE_URL: "readDatabaseUrl",
  CREDENTIALS_DATABASE_URL: "credentialsDatabaseUrl"
} as const

export const ignoredParameters = (settings: Settings): ReadonlyArray<Fact> =>
  Object.entries(urls).flatMap(([variable, field]) => {
    const url = Option.flatMap(settings[field], (text) => Result.getSuccess(ConnectionUrl.parse(Redacted.value(text))))
    const names = Option.match(url, { onNone: () => [], onSome: ({ ignored }) => ignored.slice(0, 16) }).join(", ")
    return names === "" ? [] : [warn(`${variable} has parameters that nothing reads: ${names}.`, "Remove them.")]
  })

export const user = () =>
  facts(process.getuid?.() === 0 && warn("This process runs as root.", "Run it as a user of its own."))

/** The endpoints that are open, and to whom. */
export const publicAddress = ({ databaseUrl, host, requireSignatures, roles }: Settings): ReadonlyArray<Fact> => {
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
  return [ok(`Open to ${reach}: ${open.join("; ")}`)]
}

/** An operators' listener that other machines reach. */
export const operatorsListener = ({ operationsHost, operationsPort }: Settings): ReadonlyArray<Fact> =>
  facts(
    !isLoopback(operationsHost) &&
      Option.isSome(operationsPort) &&
      warn(
        `OPERATIONS_HOST=${operationsHost} lets other machines read /metrics and /health without a token, and OPERATIONS_TOKEN travels in plain HTTP.`,
        "Let only monitors and a proxy with TLS reach this port, or unset OPERATIONS_HOST and use ssh -L."
      )
  )
