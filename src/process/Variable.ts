/** Environment variables. An error says what the variable expects, with an example. An empty variable counts as unset. */
import { Config, Duration, Effect, Option, Result, Schema, SchemaIssue } from "effect"

const longestShown = 40

const shown = (text: string) => JSON.stringify(text.length > longestShown ? `${text.slice(0, longestShown)}…` : text)

/** The error of a variable that is wrong. */
export const wrong = (name: string, message: string) =>
  new Config.ConfigError(
    new Schema.SchemaError(new SchemaIssue.Pointer([name], new SchemaIssue.InvalidValue({ message })))
  )

/** A variable of any kind whose reader says itself what is wrong, without the text where that is a secret. */
export const checked = <A>(name: string, read: (text: string) => Result.Result<A, string>): Config.Config<A> =>
  Config.NonEmptyString(name).pipe(
    Config.mapEffect((text) => Effect.mapError(Effect.fromResult(read(text)), (message) => wrong(name, message)))
  )

/**
 * A variable of any kind.
 *
 * @param expected what it should be, with an example
 * @param read the value of its text; undefined if the text is wrong
 * @param isSecret whether the text may hold a secret, and is not shown in the error
 */
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

/** A text without white space around it. */
export const text = (name: string, expected: string, longest: number) =>
  variable(name, expected, (given) => (given.trim() === given && given.length <= longest ? given : undefined))

/** An integer of a range, both ends included. */
export const integer = (
  name: string,
  {
    minimum,
    maximum,
    example = minimum
  }: { readonly minimum: number; readonly maximum: number; readonly example?: number }
) =>
  variable(name, `an integer from ${minimum} to ${maximum}, such as ${example}`, (given) => {
    const value = Number(given)
    return /^-?\d+$/.test(given) && value >= minimum && value <= maximum ? value : undefined
  })

type Length = `${number} ${Duration.Unit}`

/** A duration of a range, both ends included; the minimum is 0 by default. */
export const duration = (
  name: string,
  { minimum, maximum, example }: { readonly minimum?: Length; readonly maximum: Length; readonly example: Length }
) => {
  const range = minimum === undefined ? `of at most ${maximum}` : `from ${minimum} to ${maximum}`
  const between = Duration.between({
    minimum: Duration.fromInputUnsafe(minimum ?? 0),
    maximum: Duration.fromInputUnsafe(maximum)
  })
  const read = Schema.decodeOption(Schema.DurationFromString)
  return variable(name, `a duration ${range}, such as ${example}`, (given) =>
    Option.getOrUndefined(Option.filter(read(given), between))
  )
}

const listed = (values: ReadonlyArray<string>) => `${values.slice(0, -1).join(", ")} or ${values.at(-1) ?? ""}`

const sameText = (one: string, other: string) => one.toLowerCase() === other.toLowerCase()

/** One of several words, in any case. */
export const choice = <A extends string>(name: string, values: ReadonlyArray<A>, example: A) =>
  variable(name, `${listed(values)}, such as ${example}`, (given) => values.find((value) => sameText(value, given)))

/** Some of several words, separated by commas. */
export const choices = <A extends string>(name: string, values: ReadonlyArray<A>, example: string) =>
  variable(name, `any of ${values.join(", ")}, separated by commas, such as ${example}`, (given) => {
    const words = given.split(",").map((word) => word.trim())
    return words.every((word) => values.some((value) => value === word))
      ? values.filter((value) => words.includes(value))
      : undefined
  })

const yes = ["true", "yes", "on", "1", "y"]
const no = ["false", "no", "off", "0", "n"]

/** Yes or no. */
export const boolean = (name: string) =>
  variable(name, "a boolean such as true or false", (given) => {
    const word = given.toLowerCase()
    return yes.includes(word) ? true : no.includes(word) ? false : undefined
  })
