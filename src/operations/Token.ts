/** The operators' token: compared in constant time. Wrong ones are counted, and never keep the right one out. */
import { hash, timingSafeEqual } from "node:crypto"
import { Clock, Context, Data, Effect, Layer, Option, Redacted } from "effect"

/** Why a token does not open anything. */
export type Refused = Data.TaggedEnum<{
  /** There is no token in the configuration. */
  NotSet: {}
  Wrong: {}
  /** It is wrong, as too many before it were. `retryAfter`: in seconds. */
  TooMany: { readonly retryAfter: number }
}>
export const Refused = Data.taggedEnum<Refused>()

const minute = 60_000

/** The number of wrong tokens from an address in a minute that are refused as `Wrong`. */
export const mostWrong = 10

/** How many addresses are told apart. All others count as one. */
const mostAddresses = 1000

interface Tried {
  readonly since: number
  readonly wrong: number
}

const digest = (token: Redacted.Redacted) => hash("sha256", Redacted.value(token), "buffer")

export class Token extends Context.Service<
  Token,
  {
    readonly isSet: boolean
    /**
     * Fails unless it is the token.
     *
     * @param address where it comes from
     */
    readonly check: (given: Redacted.Redacted, address: string) => Effect.Effect<void, Refused>
  }
>()("practice-data/operations/Token") {
  static readonly layer = (token: Option.Option<Redacted.Redacted>) =>
    Layer.sync(Token, () => {
      const tried = new Map<string, Tried>()
      const keyOf = (address: string) => (tried.has(address) || tried.size < mostAddresses ? address : "others")
      const forget = (now: number) => {
        for (const [key, { since }] of tried) if (now - since >= minute) tried.delete(key)
      }
      return Token.of({
        isSet: Option.isSome(token),
        check: Effect.fnUntraced(function* (given, address) {
          if (Option.isNone(token)) return yield* Effect.fail(Refused.NotSet())
          if (timingSafeEqual(digest(given), digest(token.value))) return
          const now = yield* Clock.currentTimeMillis
          forget(now)
          const key = keyOf(address)
          const { since, wrong } = tried.get(key) ?? { since: now, wrong: 0 }
          if (wrong >= mostWrong) {
            return yield* Effect.fail(Refused.TooMany({ retryAfter: Math.ceil((since + minute - now) / 1000) }))
          }
          tried.set(key, { since, wrong: wrong + 1 })
          return yield* Effect.fail(Refused.Wrong())
        })
      })
    })
}
