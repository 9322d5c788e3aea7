/** What is used of negotiator, whose published types lack the option. */
declare module "negotiator" {
  export default class Negotiator {
    constructor(request: { readonly headers: Readonly<Record<string, string>> })
    /** The one of the available encodings that the request prefers; of several alike the first preferred. */
    encoding<const Available extends string>(
      available: ReadonlyArray<Available>,
      options: { readonly preferred: ReadonlyArray<NoInfer<Available>> }
    ): Available | undefined
  }
}
