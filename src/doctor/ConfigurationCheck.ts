/** Checks every variable for itself. */
import { type Config, ConfigProvider, Effect, Exit, Option, Redacted } from "effect"
import { variables } from "../Config.ts"
import * as Failure from "../process/Failure.ts"
import { fail, ok, type Said, warn } from "./Finding.ts"

const area = "Configuration"

/** A URL without its password and parameters. */
export const masked = (text: string) => {
  const url = URL.parse(text)
  if (url === null || url.hostname === "") return "(set)"
  const user = url.username === "" ? "" : `${url.username}@`
  return `${url.protocol}//${user}${url.host}${url.pathname}`
}

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

/** Names that differ from one of ours in a letter or two, and that nobody reads. */
const isNear = (one: string, other: string) => {
  if (one === other || Math.abs(one.length - other.length) > 2) return false
  const distances = Array.from({ length: other.length + 1 }, (_, index) => index)
  for (const [row, letter] of one.split("").entries()) {
    let diagonal = row
    distances[0] = row + 1
    for (const [column, against] of other.split("").entries()) {
      const above = distances[column + 1] ?? 0
      distances[column + 1] = Math.min(above + 1, (distances[column] ?? 0) + 1, diagonal + (letter === against ? 0 : 1))
      diagonal = above
    }
  }
  return (distances[other.length] ?? 0) <= 2
}

/**
 * What is set, without secrets, and what is wrong.
 *
 * @param environment the names that are set
 */
export const check = Effect.fnUntraced(function* (environment: ReadonlyArray<string>) {
  const found = yield* Effect.forEach(Object.values<Config.Config<unknown>>(variables), read)
  const names = found.map(({ name }) => name)
  const said = found.flatMap(sayOf)
  const unset = found.filter(({ text }) => text === "").length
  const mistyped = environment.flatMap((name) => {
    const meant = names.includes(name) || name.length < 6 ? undefined : names.find((known) => isNear(name, known))
    return meant === undefined
      ? []
      : [warn(`${name} is set, and nothing reads it.`, `If ${meant} is meant, set that instead.`)]
  })
  return [...said, ...mistyped, ok(`${unset} more have their defaults.`)].map((each) => ({ area, ...each }))
})
