/** The paths of an API and their methods. */

interface Endpoint {
  readonly path: string
  readonly method: string
}

/** What is read of an `HttpApi`. */
interface Api {
  readonly groups: Readonly<Record<string, { readonly endpoints: Readonly<Record<string, Endpoint>> }>>
}

/** The methods of each path, where HEAD is among them if GET is. */
export type Paths = ReadonlyMap<string, ReadonlyArray<string>>

const reading = ["GET", "HEAD"]

const pathsBelow = (prefix: string, { groups }: Api): ReadonlyArray<readonly [string, ReadonlyArray<string>]> => [
  [`${prefix}/openapi.json`, reading],
  [`${prefix}/docs`, reading],
  ...Object.values(groups)
    .flatMap(({ endpoints }) => Object.values(endpoints))
    .map(({ path, method }) => [`${prefix}${path}`, method === "GET" ? reading : [method]] as const)
]

/** `/`, and the paths of APIs by their prefix, each with its documents beside its endpoints. */
export const pathsOf = (apis: Readonly<Record<string, Api>>): Paths =>
  new Map([["/", reading], ...Object.entries(apis).flatMap(([prefix, api]) => pathsBelow(prefix, api))])
