/** The client of the data API. */
import { Resources, resources } from "./generated/resources.ts"
import type { AllChanges } from "./generated/types.ts"
import { type AllChangesOptions, type ClientOptions, printable, settingsOf } from "./Options.ts"
import { send } from "./Transport.ts"
import { anyResource, type AnyResource, changes, makeWith, type Post } from "./Resource.ts"
import { readAllChanges } from "./Response.ts"

export interface PracticeDataOptions extends ClientOptions {
  /** The API key, which decides the organization. Never in a message or an inspected object. */
  readonly apiKey: string
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

  /** Throws if an option is invalid. Nothing is sent. */
  constructor({ apiKey, ...options }: PracticeDataOptions) {
    const settings = settingsOf(options)
    const authorization = `Bearer ${printable("apiKey", apiKey, 1000)}`
    const headers = () => Promise.resolve({ authorization })
    const post: Post = (path, body, read, requestOptions, more) =>
      send(settings, { path: `/api/v3${path}`, body, headers, read, ...more }, requestOptions)
    super(makeWith(post))
    this.#post = post
  }

  /**
   * The changes of all resources after a cursor, in one order, page after page; without a cursor, all records first. It
   * ends when there are no more changes yet, unless `follow` is set. It asks for the next page while you use this one.
   *
   * Apply the changes of a page in their order: insert or replace a `record` by its `id`, delete a `removed` id; after a
   * `reset`, delete the records that do not arrive before `has_more` is false. Save the copy and `cursor` in one transaction. Where
   * `is_consistent` is true, the copy equals a state that the database had.
   *
   * @example
   * for await (const page of client.changes(cursor)) await save(page.body, page.cursor)
   */
  changes(cursor?: string | null, options: AllChangesOptions = {}): AsyncGenerator<AllChanges, void, undefined> {
    return changes(this.#post, "/changes", readAllChanges, cursor, options)
  }

  /** A resource by its name in the API's paths, such as `consumption-logs`. `resources` has all names. */
  resource(name: string): AnyResource {
    const info = resources.find((resource) => resource.name === name)
    if (info === undefined) throw new RangeError(`There is no resource ${JSON.stringify(name)}`)
    return anyResource(this.#post, info)
  }
}
