/** Answers the endpoints of the records: check the request, read, hand the JSON on. */
import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { CancellationPaymentIntents } from "../api/records/CancellationPaymentIntents.ts"
import { ChargeAdjustments } from "../api/records/ChargeAdjustments.ts"
import { ChargePayments } from "../api/records/ChargePayments.ts"
import { ChargeRefunds } from "../api/records/ChargeRefunds.ts"
import { Charges } from "../api/records/Charges.ts"
import { Clinics } from "../api/records/Clinics.ts"
import { ConsumptionLogs } from "../api/records/ConsumptionLogs.ts"
import { InvoiceLines } from "../api/records/InvoiceLines.ts"
import { Invoices } from "../api/records/Invoices.ts"
import { Organizations } from "../api/records/Organizations.ts"
import { PaymentIntents } from "../api/records/PaymentIntents.ts"
import { PaymentPlans } from "../api/records/PaymentPlans.ts"
import { PetBenefits } from "../api/records/PetBenefits.ts"
import { Pets } from "../api/records/Pets.ts"
import { Products } from "../api/records/Products.ts"
import { checkOrganization, identified } from "../keys/CheckOrganization.ts"
import type { Criteria, Repository } from "./Repository.ts"
import { idOf, pageOf } from "../api/records/Search.ts"
import { Subscriptions } from "../api/records/Subscriptions.ts"

const json = (text: string) => HttpServerResponse.text(text, { contentType: "application/json" })

/** Handlers of a resource. */
export const handlersOf = (repository: Repository) => ({
  search: Effect.fnUntraced(function* ({ payload }: { readonly payload: Criteria & SearchRequest }) {
    yield* checkOrganization(payload)
    const page = yield* pageOf(payload)
    return json(yield* repository.search(payload, page))
  }),
  get: Effect.fnUntraced(function* ({ payload }: { readonly payload: GetRequest }) {
    yield* checkOrganization(payload)
    const id = yield* idOf(payload)
    return json(yield* repository.get(id))
  })
})

interface SearchRequest {
  readonly organization?: string | null
  readonly limit?: number | null
  readonly offset?: number | null
}

interface GetRequest {
  readonly organization?: string | null
  readonly id?: string | null
}

export const layer = Layer.mergeAll(
  HttpApiBuilder.group(DataApi, "organization", (handlers) =>
    Effect.map(Organizations, (organizations) =>
      handlers.handleAll({
        get: Effect.fnUntraced(function* ({ payload }) {
          yield* checkOrganization(payload)
          return json(yield* organizations.get(yield* CurrentOrganization.id))
        }, identified)
      })
    )
  ),
  HttpApiBuilder.group(DataApi, "clinics", (all) =>
    Effect.map(Clinics, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "pets", (all) => Effect.map(Pets, (records) => all.handleAll(handlersOf(records)))),
  HttpApiBuilder.group(DataApi, "subscriptions", (all) =>
    Effect.map(Subscriptions, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "payment-plans", (all) =>
    Effect.map(PaymentPlans, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "payment-intents", (all) =>
    Effect.map(PaymentIntents, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "cancellation-payment-intents", (all) =>
    Effect.map(CancellationPaymentIntents, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "pet-benefits", (all) =>
    Effect.map(PetBenefits, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "products", (all) =>
    Effect.map(Products, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "consumption-logs", (all) =>
    Effect.map(ConsumptionLogs, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "invoices", (all) =>
    Effect.map(Invoices, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "invoice-lines", (all) =>
    Effect.map(InvoiceLines, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "charges", (all) =>
    Effect.map(Charges, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "charge-payments", (all) =>
    Effect.map(ChargePayments, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "charge-adjustments", (all) =>
    Effect.map(ChargeAdjustments, (records) => all.handleAll(handlersOf(records)))
  ),
  HttpApiBuilder.group(DataApi, "charge-refunds", (all) =>
    Effect.map(ChargeRefunds, (records) => all.handleAll(handlersOf(records)))
  )
)
