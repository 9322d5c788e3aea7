/** The fake of the PSP: objects in memory, by the PSP's own rules. */
import { Array, Effect, Order, Predicate } from "effect"
import type { PspKind } from "../api/Psp.ts"
import { AccountDisconnected, CursorUnknown, type PageRequest } from "./PspPage.ts"

/** An object of the PSP; its other fields are passed on. */
export interface PspObject {
  readonly id: string
  /** Seconds since 1970. */
  readonly created: number
  readonly [field: string]: unknown
}

/** The objects of each connected account. */
export type Accounts = Readonly<Record<string, Partial<Readonly<Record<PspKind, ReadonlyArray<PspObject>>>>>>

// Newest first; of the same second, the one that was made last: the greater id.
const newestFirst = Order.combine(
  Order.flip(Order.mapInput(Order.Number, (object: PspObject) => object.created)),
  Order.flip(Order.mapInput(Order.String, (object: PspObject) => object.id))
)

/** A client of accounts in memory. */
export const make = (accounts: Accounts) => ({
  list: (
    kind: PspKind,
    account: string,
    { limit, startingAfter, createdGte = 0, createdLte = Number.POSITIVE_INFINITY }: PageRequest
  ) =>
    Effect.gen(function* () {
      const objects = new Map(Object.entries(accounts)).get(account)
      if (objects === undefined) return yield* new AccountDisconnected()
      const all = Array.sort(objects[kind] ?? [], newestFirst)
      // The cursor is looked up among all objects of the account, whatever the bounds.
      const cursor = all.findIndex((object) => object.id === startingAfter)
      if (Predicate.isString(startingAfter) && cursor === -1) return yield* new CursorUnknown()
      const rest = all.slice(cursor + 1).filter(({ created }) => created >= createdGte && created <= createdLte)
      return { data: rest.slice(0, limit), hasMore: rest.length > limit }
    })
})
