/** Environment variables that nothing reads, one slip away from one that is read: `DATABSE_URL` would start the demo. */
import { type Config, ConfigProvider, Effect } from "effect"
import { wrong } from "./Variable.ts"

/** A shorter name, or one near to it, may be anybody's. */
export const shortest = 6

/** Longer names than any that is read have this many parts. */
const mostParts = 16

const namesIn = (
  provider: ConfigProvider.ConfigProvider,
  path: ReadonlyArray<string> = []
): Effect.Effect<ReadonlyArray<string>, ConfigProvider.SourceError> =>
  Effect.gen(function* () {
    const node = yield* provider.load(path)
    const keys = node?._tag === "Record" && path.length < mostParts ? [...node.keys] : []
    const below = yield* Effect.forEach(keys, (key) => namesIn(provider, [...path, key]))
    return [...(node?.value === undefined ? [] : [path.join("_")]), ...below.flat()]
  })

/** The names of the variables that are set. */
export const namesSet = Effect.orElseSucceed(
  Effect.flatMap(ConfigProvider.ConfigProvider, (provider) => namesIn(provider)),
  () => []
)

/** The names of the variables that a configuration reads. It needs none of them. */
export const namesOf = Effect.fnUntraced(function* (config: Config.Config<unknown>) {
  const names: Array<string> = []
  yield* Effect.ignore(config.parse(ConfigProvider.make((path) => Effect.sync(() => void names.push(path.join("_"))))))
  return names
})

/** True if one letter that was dropped, added, replaced or swapped with the next makes one word of another. */
const isSlip = (one: string, other: string) => {
  const shorter = Math.min(one.length, other.length)
  let start = 0
  while (start < shorter && one[start] === other[start]) start++
  let end = 0
  while (end < shorter - start && one.at(-1 - end) === other.at(-1 - end)) end++
  const [here, there] = [one.slice(start, one.length - end), other.slice(start, other.length - end)]
  return (here.length < 2 && there.length < 2) || (there.length === 2 && here === `${there[1]}${there[0]}`)
}

/** The name that was meant by one that nothing reads. */
export const meantBy = (name: string, known: ReadonlyArray<string>): string | undefined =>
  known.includes(name) ? undefined : known.find((each) => each.length >= shortest && isSlip(name, each))

/** Fails if a variable is set that is one slip away from one of a configuration. */
export const refuse = Effect.fnUntraced(function* (config: Config.Config<unknown>) {
  const known = yield* namesOf(config)
  for (const name of yield* namesSet) {
    const meant = meantBy(name, known)
    if (meant === undefined) continue
    return yield* Effect.fail(wrong(name, `nothing reads it, and ${meant} does: rename or unset it`))
  }
})
