/** The PSP, the payment service provider: pages of the objects of a connected account. */
import { Array, Context, Effect, Layer, Order, Predicate } from "effect"
import type { PspKind, PspObject } from "../api/Psp.ts"
import * as Psp from "./PspPage.ts"
import type { StripeOptions } from "./StripeClient.ts"

export * from "./PspPage.ts"

/** Stripe. Its client has two hundred modules, and is loaded only where there is a key. */
export const stripe = (options: StripeOptions) =>
  Effect.promise(() => import("./StripeClient.ts").then(({ make }) => make(options)))

/** The objects of each connected account, in any order. */
export type Accounts = Readonly<Record<string, Partial<Readonly<Record<PspKind, ReadonlyArray<PspObject>>>>>>

// Newest first; within a second, the greater id.
const newestFirst = Order.flip(Order.Struct({ created: Order.Number, id: Order.String }))

/** The fake: accounts in memory, read by the PSP's own rules. */
export const memory = (accounts: Accounts): { readonly list: Psp.List } => ({
  list: Effect.fnUntraced(function* (kind, account, { limit, startingAfter, createdGte = 0, createdLte = Infinity }) {
    const objects = new Map(Object.entries(accounts)).get(account)
    if (objects === undefined) return yield* new Psp.AccountDisconnected()
    const all = Array.sort(objects[kind] ?? [], newestFirst)
    // The cursor may be any object of the account, within the bounds or not.
    const cursor = all.findIndex((object) => object.id === startingAfter)
    if (Predicate.isString(startingAfter) && cursor === -1) return yield* new Psp.CursorUnknown()
    const rest = all.slice(cursor + 1).filter(({ created }) => created >= createdGte && created <= createdLte)
    return { data: rest.slice(0, limit), hasMore: rest.length > limit }
  })
})

export class PspClient extends Context.Service<
  PspClient,
  {
    readonly list: Psp.List
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
    list: () => Effect.fail(new Psp.PspNotConfigured()),
    isMissing: true
  })
}
