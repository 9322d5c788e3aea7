/** The context in which handlers are built, and that in which requests are served. */
import { type Context, Effect, Layer } from "effect"

/**
 * Handlers that are built in a part of the context around them. Handlers of an HttpApi run in the context in which they
 * are built, merged into that of each request: what is left out here is not copied for each request, and is for the
 * request to say.
 *
 * @param part what of the context is left, such as `Context.pick(Repositories)`
 */
export const reduced = <A, E, R>(
  handlers: Layer.Layer<A, E, R>,
  part: (context: Context.Context<R>) => Context.Context<R>
): Layer.Layer<A, E, R> =>
  Layer.fromBuild((memoMap, scope) => Effect.updateContext(Layer.buildWithMemoMap(handlers, memoMap, scope), part))
