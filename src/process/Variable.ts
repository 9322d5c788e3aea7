/** Environment variables. An error names what the variable expects, with an example. An empty variable counts as unset. */
import { Config, Duration, Effect, Option, Result, Schema, SchemaIssue } from "effect"

const longestShown = 40

const shown = (text: string) => JSON.stringify(text.length > longestShown ? `${text.slice(0, longestShown)}…` : text)

export const wrong = (name: string, message: string) =>
  new Config.ConfigError(
    new Schema.SchemaError(new SchemaIssue.Pointer([name], new SchemaIssue.InvalidValue({ message })))
  )

/** A variable whose reader explains a wrong text itself, without repeating a secret. */
export const checked = <A>(name: string, read: (text: string) => Result.Result<A, string>): Config.Config<A> =>
  Config.NonEmptyString(name).pipe(
    Config.mapEffect((text) => Effect.mapError(Effect.fromResult(read(text)), (message) => wrong(name, message)))
  )

/** A variable: what it expects, with an example, and the value of a text, undefined if it is wrong. */
export const variable = <A>(
  name: string,
  expected: string,
  read: (text: string) => A | undefined,
  isSecret = false
): Config.Config<A> =>
  checked(name, (given) => {
    const value = read(given)
    return value === undefined
      ? Result.fail(`expected ${expected}${isSecret ? "" : `, got ${shown(given)}`}`)
      : Result.succeed(value)
  })

export const text = (name: string, expected: string, longest: number) =>
  variable(name, expected, (given) => (given.trim() === given && given.length <= longest ? given : undefined))

/** An integer of a range, both ends included. */
export const integer = (name: string, [minimum, maximum]: readonly [number, number], example: number) =>
  variable(name, `an integer from ${minimum} to ${maximum}, such as ${example}`, (given) => {
    const value = Number(given)
    return /^\d+$/.test(given) && value >= minimum && value <= maximum ? value : undefined
  })

const units = { ms: "millis", s: "seconds", m: "minutes", h: "hours", d: "days" } as const

/** A length of time such as `500ms`, `3s` or `1m`. */
export type Length = `${number}${keyof typeof units}`

const isUnit = (word: string): word is keyof typeof units => Object.hasOwn(units, word)

const decodeDuration = Schema.decodeOption(Schema.DurationFromString)

/** Effect has longer units: `3 seconds`, which are taken as well. */
const parsed = (given: string) =>
  decodeDuration(given.replace(/(?<=^[\d.]+)[a-z]+$/, (unit) => (isUnit(unit) ? ` ${units[unit]}` : unit)))

export const toDuration = (length: Length) => Option.getOrThrow(parsed(length))

/** A duration of a range, both ends included. */
export const duration = (name: string, [minimum, maximum]: readonly [Length, Length], example: Length) => {
  const range = minimum === "0s" ? `of at most ${maximum}` : `from ${minimum} to ${maximum}`
  const between = Duration.between({ minimum: toDuration(minimum), maximum: toDuration(maximum) })
  return variable(name, `a duration ${range}, such as ${example}`, (given) =>
    Option.getOrUndefined(Option.filter(parsed(given), between))
  )
}

/** One of several words, in any case. */
export const choice = <A extends string>(name: string, values: ReadonlyArray<A>, example: A) =>
  variable(name, `${values.slice(0, -1).join(", ")} or ${values.at(-1) ?? ""}, such as ${example}`, (given) =>
    values.find((value) => value.toLowerCase() === given.toLowerCase())
  )

/** Some of several words, separated by commas. */
export const choices = <A extends string>(name: string, values: ReadonlyArray<A>, example: string) =>
  variable(name, `any of ${values.join(", ")}, separated by commas, such as ${example}`, (given) => {
    const words = given.split(",").map((word) => word.trim())
    return words.every((word) => values.some((value) => value === word))
      ? values.filter((value) => words.includes(value))
      : undefined
  })

const truths = new Map(
  ["true", "yes", "on", "1", "y", "false", "no", "off", "0", "n"].map((word, index) => [word, index < 5])
)

export const boolean = (name: string) =>
  variable(name, "a boolean such as true or false", (given) => truths.get(given.toLowerCase()))
