/** The PSP, the payment service provider: pages of the objects of a connected account. */
import { Context, Effect, Layer } from "effect"
import type { PspKind } from "../api/Psp.ts"
import * as Memory from "./PspMemory.ts"
import { type Page, type PageRequest, type PspError, PspNotConfigured } from "./PspPage.ts"
import * as Stripe from "./StripeClient.ts"

export class PspClient extends Context.Service<
  PspClient,
  {
    /** A page of the objects of a kind in a connected account. Interrupting it closes the connection. */
    readonly list: (kind: PspKind, account: string, page: PageRequest) => Effect.Effect<Page, PspError>
    /** Set where there is no PSP. */
    readonly isMissing?: true
  }
>()("practice-data/psp/PspClient") {
  /** Stripe, by its official client. */
  static readonly layerStripe = (options: Stripe.Options) => Layer.effect(PspClient, Stripe.make(options))

  /** The fake: the objects of each account, of any order. */
  static readonly layerMemory = (accounts: Memory.Accounts) => Layer.sync(PspClient, () => Memory.make(accounts))

  /** No PSP at all. */
  static readonly layerNotConfigured = Layer.succeed(
    PspClient,
    PspClient.of({ list: () => Effect.fail(new PspNotConfigured()), isMissing: true })
  )
}
