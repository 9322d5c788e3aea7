/** How often a property is tried: a few times in `npm test`, many times among the long tests. */
import type { Arbitrary } from "effect"

interface Try {
  /** For the end of the test's name. */
  readonly often: string
  readonly options: { readonly tags: Array<string>; readonly arbitrary: Arbitrary.CheckOptions }
}

/**
 * The options of a property in both tiers.
 *
 * @param few runs in `npm test`
 * @param many runs among the long tests
 */
export const tries = ({
  few,
  many,
  ...others
}: Omit<Arbitrary.CheckOptions, "runs"> & { readonly few: number; readonly many: number }): ReadonlyArray<Try> => [
  { often: "", options: { tags: [], arbitrary: { ...others, runs: few } } },
  { often: ` (${many} runs)`, options: { tags: ["long"], arbitrary: { ...others, runs: many } } }
]

/** The options of a test that `npm test` leaves out. */
export const long = { tags: ["long"] }

/** Resources that have each kind of filter, order and request among them. */
const various = ["organization", "clinics", "products", "consumption-logs", "pet-benefits", "charges"]

/** The tags of a test that each resource has: `npm test` has those of various ones. */
export const tagsOf = (resource: string) => (various.includes(resource) ? [] : long.tags)

/** The options of a layer whose tests have the real clock. */
export const live = { excludeTestServices: true } as const
