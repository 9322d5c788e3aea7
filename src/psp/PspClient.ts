/** The PSP, the payment service provider: pages of the objects of a connected account. */
import {
  Array,
  Context,
  Data,
  type Duration,
  Effect,
  Layer,
  type Option,
  Order,
  Predicate,
  type Redacted
} from "effect"
import type { PspKind } from "../api/Psp.ts"

/** The page to read. Times are seconds since 1970, both inclusive. */
export interface PageRequest {
  readonly limit: number
  readonly startingAfter?: string | undefined
  readonly createdGte?: number | undefined
  readonly createdLte?: number | undefined
}

/** Objects as the PSP gives them, newest first. */
export interface Page {
  readonly data: ReadonlyArray<unknown>
  readonly hasMore: boolean
}

/** The account has no object with the id of `startingAfter`. */
export class CursorUnknown extends Data.TaggedError("CursorUnknown") {}

/** The account is not connected to ours, or no longer. */
export class AccountDisconnected extends Data.TaggedError("AccountDisconnected") {}

/** There is no PSP. */
export class PspNotConfigured extends Data.TaggedError("PspNotConfigured") {}

/** The PSP asks for a pause. `request` is its id of the request. */
export class RateLimited extends Data.TaggedError("RateLimited")<{
  readonly retryAfter: Duration.Duration
  readonly request?: string | undefined
}> {}

/**
 * A call failed. `psp`: for every account, as the PSP cannot be reached or refuses our own key. `unclear`: for this account
 * and perhaps for others, by an error of the PSP or an invalid response. `unauthorized`: the same, by a refusal of our key.
 * `account`: for this account alone. `request`: the PSP refuses the request.
 */
export class PspFailed extends Data.TaggedError("PspFailed")<{
  readonly blame: "psp" | "unclear" | "unauthorized" | "account" | "request"
  /** For the log. It has no text of the PSP. */
  readonly reason: string
  /** The PSP's id of the request. */
  readonly request?: string | undefined
  readonly retryAfter?: Duration.Duration | undefined
}> {}

export type PspError = CursorUnknown | AccountDisconnected | PspNotConfigured | RateLimited | PspFailed

export interface StripeOptions {
  /** The key of our own account, such as `sk_live_...`. */
  readonly secretKey: Redacted.Redacted
  /** The address of a double of Stripe; by default Stripe itself. */
  readonly apiUrl?: Option.Option<URL>
}

/** Stripe. Its client has two hundred modules, and is loaded only where there is a key. */
export const stripe = (options: StripeOptions) =>
  Effect.map(
    Effect.promise(() => import("./StripeClient.ts")),
    ({ make }) => make(options)
  )

/** An object of the PSP; its other fields are passed on. */
export interface PspObject {
  readonly id: string
  /** The type of the object, such as `charge`. */
  readonly object: string
  /** Seconds since 1970. */
  readonly created: number
  readonly [field: string]: unknown
}

/** The objects of each connected account, in any order. */
export type Accounts = Readonly<Record<string, Partial<Readonly<Record<PspKind, ReadonlyArray<PspObject>>>>>>

// Newest first; within a second, the greater id.
const newestFirst = Order.flip(Order.Struct({ created: Order.Number, id: Order.String }))

/** The fake: accounts in memory, read by the PSP's own rules. */
export const memory = (accounts: Accounts) => ({
  list: Effect.fnUntraced(function* (
    kind: PspKind,
    account: string,
    { limit, startingAfter, createdGte = 0, createdLte = Infinity }: PageRequest
  ) {
    const objects = new Map(Object.entries(accounts)).get(account)
    if (objects === undefined) return yield* new AccountDisconnected()
    const all = Array.sort(objects[kind] ?? [], newestFirst)
    // The cursor may be any object of the account, within the bounds or not.
    const cursor = all.findIndex((object) => object.id === startingAfter)
    if (Predicate.isString(startingAfter) && cursor === -1) return yield* new CursorUnknown()
    const rest = all.slice(cursor + 1).filter(({ created }) => created >= createdGte && created <= createdLte)
    return { data: rest.slice(0, limit), hasMore: rest.length > limit }
  })
})

export class PspClient extends Context.Service<
  PspClient,
  {
    /** Reads a page of the objects of a kind in a connected account. Interrupting it closes the connection. */
    readonly list: (kind: PspKind, account: string, page: PageRequest) => Effect.Effect<Page, PspError>
    /** Set if there is no PSP. */
    readonly isMissing?: true
  }
>()("practice-data/psp/PspClient") {
  /** Stripe, by its official client. */
  static readonly layerStripe = (options: StripeOptions) => Layer.effect(PspClient, stripe(options))

  /** The fake: accounts in memory, by their ids. */
  static readonly layerMemory = (accounts: Accounts) => Layer.sync(PspClient, () => memory(accounts))

  /** No PSP: every read fails with `PspNotConfigured`, a 503 of the API. */
  static readonly layerNotConfigured = Layer.succeed(PspClient, {
    list: () => Effect.fail(new PspNotConfigured()),
    isMissing: true
  })
}
