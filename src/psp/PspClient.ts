/** The PSP, the payment service provider: pages of the objects of a connected account. */
import { Array, Context, Effect, Layer, Order, Predicate } from "effect"
import type { PspKind } from "../api/Psp.ts"
import * as Psp from "./PspPage.ts"
import * as Stripe from "./StripeClient.ts"

/** An object of the PSP; its other fields are passed on. */
export interface PspObject {
  readonly id: string
  /** Seconds since 1970. */
  readonly created: number
  readonly [field: string]: unknown
}

/** The objects of each connected account, in any order. */
export type Accounts = Readonly<Record<string, Partial<Readonly<Record<PspKind, ReadonlyArray<PspObject>>>>>>

// Newest first; within a second, the greater id.
const newestFirst = Order.combine(
  Order.flip(Order.mapInput(Order.Number, (object: PspObject) => object.created)),
  Order.flip(Order.mapInput(Order.String, (object: PspObject) => object.id))
)

/** The fake: accounts in memory, read by the PSP's own rules. */
export const memory = (accounts: Accounts) => ({
  list: Effect.fnUntraced(function* (
    kind: PspKind,
    account: string,
    { limit, startingAfter, createdGte = 0, createdLte = Infinity }: Psp.PageRequest
  ) {
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
    /** Reads a page of the objects of a kind in a connected account. Interrupting it closes the connection. */
    readonly list: (kind: PspKind, account: string, page: Psp.PageRequest) => Effect.Effect<Psp.Page, Psp.PspError>
    /** Set if there is no PSP. */
    readonly isMissing?: true
  }
>()("practice-data/psp/PspClient") {
  static readonly layerStripe = (options: Stripe.Options) => Layer.effect(PspClient, Stripe.make(options))

  static readonly layerMemory = (accounts: Accounts) => Layer.sync(PspClient, () => memory(accounts))

  static readonly layerNotConfigured = Layer.succeed(
    PspClient,
    PspClient.of({ list: () => Effect.fail(new Psp.PspNotConfigured()), isMissing: true })
  )
}
