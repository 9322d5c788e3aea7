/** The client of the data API. */
import { Resources, resources } from "./generated/resources.ts"
import { type ClientOptions, settingsOf } from "./Options.ts"
import { type Post, postWith } from "./Pages.ts"
import { makeAny, makeWith } from "./MakeResource.ts"
import type { AnyResource } from "./Resource.ts"

/** Options of the client of the data API. */
export interface PracticeDataOptions extends ClientOptions {
  /** The API key, which decides the organization. It is shown nowhere. */
  readonly apiKey: string
}

const checked = (apiKey: string) => {
  if (typeof apiKey !== "string" || apiKey === "") throw new TypeError("apiKey is missing")
  if (/^[\x21-\x7e]+$/.test(apiKey)) return apiKey
  throw new TypeError("apiKey has a space, a line break or another character that an API key does not have")
}

/**
 * Reads the data of the organization that an API key belongs to.
 *
 * @example
 * const client = new PracticeData({ baseUrl: "http://127.0.0.1:3000", apiKey: "pda_demo_oakridge" })
 * for await (const charge of client.charges.all({ status: "open" })) console.log(charge.id)
 */
export class PracticeData extends Resources {
  readonly #post: Post

  /** Throws where an option is not as it should be. Nothing is sent. */
  constructor(options: PracticeDataOptions) {
    const post = postWith(settingsOf(options), checked(options.apiKey))
    super(makeWith(post))
    this.#post = post
  }

  /** A resource by its name in the API's paths, such as `consumption-logs`. `resources` has all names. */
  resource(name: string): AnyResource {
    const info = resources.find((resource) => resource.name === name)
    if (info !== undefined) return makeAny(this.#post, info)
    throw new RangeError(`There is no resource ${JSON.stringify(name)}`)
  }
}
