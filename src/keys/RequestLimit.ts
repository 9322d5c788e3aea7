/** How many requests an organization may send to the data API, where the operator sets a limit. */
import { Context, Effect, Layer } from "effect"
import { RateLimiter } from "effect/persistence"
import { TooManyRequests } from "../api/Errors.ts"

// Made once: a stack trace costs more than the rest of the response.
const tooManyRequests = new TooManyRequests()

/** Counts a request of an organization. Without a limit, nothing. */
export const RequestLimit = Context.Reference<
  ((organization: string) => Effect.Effect<void, TooManyRequests>) | undefined
>("practice-data/keys/RequestLimit", { defaultValue: () => undefined })

/**
 * A limit that each process holds by itself.
 *
 * @param perSecond how many requests an organization may send each second, and at once
 */
export const layer = (perSecond: number) =>
  Layer.effect(
    RequestLimit,
    Effect.map(
      RateLimiter.make,
      (limiter) => (organization: string) =>
        limiter.consume({ algorithm: "token-bucket", key: organization, limit: perSecond, window: "1 second" }).pipe(
          Effect.mapError(() => tooManyRequests),
          Effect.asVoid
        )
    )
  ).pipe(Layer.provide(RateLimiter.layerStoreMemory))
