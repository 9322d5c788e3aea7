/** The used part of negotiator, whose published types lack the option. */
declare module "negotiator" {
  export default class Negotiator {
    constructor(request: { readonly headers: Readonly<Record<string, string>> })
    /** The available encoding that the request prefers; of equal ones, the first of `preferred`. */
    encoding<const Available extends string>(
      available: ReadonlyArray<Available>,
      options: { readonly preferred: ReadonlyArray<NoInfer<Available>> }
    ): Available | undefined
  }
}
