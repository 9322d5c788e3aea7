/** Checks every variable for itself. */
import { type Config, ConfigProvider, Effect, Exit, Option, Redacted, Result } from "effect"
import { variables } from "../../app/Config.ts"
import * as ConnectionUrl from "../../database/ConnectionUrl.ts"
import * as OtlpConfig from "../../observability/OtlpConfig.ts"
import { isLoopback } from "../Access.ts"
import * as Failure from "../../process/Failure.ts"
import * as Variable from "../../process/Variable.ts"
import { fail, ok, type Said, warn } from "./Finding.ts"

const area = "Configuration"

/** A URL of a Postgres without its password and parameters. Any other secret is only known to be set. */
const masked = (text: string) =>
  Result.match(ConnectionUrl.parse(text), { onFailure: () => "(set)", onSuccess: ConnectionUrl.format })

const shown = (value: unknown, text: string) => {
  const inner = Option.isOption(value) ? Option.getOrUndefined(value) : value
  return Redacted.isRedacted(inner) ? masked(text) : text
}

/** The variable that a setting reads, its text, and what is wrong with it. */
const read = Effect.fnUntraced(function* (setting: Config.Config<unknown>) {
  const provider = yield* ConfigProvider.ConfigProvider
  let name = ""
  let text = ""
  const recording = ConfigProvider.make((path) => {
    name = path.join("_")
    return Effect.tap(provider.load(path), (node) => Effect.sync(() => (text = node?.value ?? "")))
  })
  const value = yield* Effect.exit(setting.parse(recording))
  return { name, text, value }
})

const sayOf = ({ name, text, value }: Effect.Success<ReturnType<typeof read>>): ReadonlyArray<Said> => {
  if (Exit.isSuccess(value)) return text === "" ? [] : [ok(`${name}=${shown(value.value, text)}`)]
  const error = Option.getOrUndefined(Exit.findErrorOption(value))
  return [
    fail(
      error === undefined ? `${name} cannot be read.` : Failure.explain(error),
      `Set ${name} to what is expected, or unset it.`
    )
  ]
}

/** What is to be said of the operators' listener. */
const operations = Effect.gen(function* () {
  const [port, host, token] = yield* Effect.all([
    variables.operationsPort,
    variables.operationsHost,
    variables.operationsToken
  ])
  if (isLoopback(host) || Option.isNone(port)) return []
  return [
    Option.isNone(token)
      ? warn(
          `OPERATIONS_HOST=${host} lets other machines read /metrics and /health of the operators' listener, and there is no OPERATIONS_TOKEN: nobody sees its page.`,
          "Set OPERATIONS_TOKEN, or unset OPERATIONS_HOST and reach the page through ssh -L."
        )
      : warn(
          `OPERATIONS_HOST=${host} lets other machines read /metrics and /health without a token, and the token travels in plain HTTP.`,
          "Let only monitors and a proxy with TLS reach this port."
        )
  ]
}).pipe(Effect.orElseSucceed(() => []))

/** What is set, without secrets, and what is wrong. */
export const check = Effect.fnUntraced(function* () {
  const environment = yield* Variable.namesSet
  const found = yield* Effect.forEach(
    [...Object.values<Config.Config<unknown>>(variables), ...OtlpConfig.variables],
    read
  )
  const names = found.map(({ name }) => name)
  const said = found.flatMap(sayOf)
  const unset = found.filter(({ text }) => text === "").length
  const mistyped = environment.flatMap((name) => {
    const meant = Variable.meantBy(name, names)
    if (meant !== undefined)
      return [fail(`${name} is set, and nothing reads it.`, `Rename it to ${meant}, or unset it.`)]
    const near = names.includes(name) || name.length < Variable.shortest ? undefined : Variable.nearest(name, names)
    return near === undefined
      ? []
      : [warn(`${name} is set, and nothing reads it.`, `If ${near} is meant, set that instead.`)]
  })
  return [...said, ...mistyped, ...(yield* operations), ok(`${unset} more have their defaults.`)].map((each) => ({
    area,
    ...each
  }))
})
