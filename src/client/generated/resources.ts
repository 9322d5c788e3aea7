// Made by `npm run generate` from the OpenAPI documents of the APIs. Change these instead.

import type { KeyedResource, LiveResource, Make, OwnResource, RecordResource, ResourceInfo } from "../Resource.ts"
import type * as Types from "./types.ts"

const info = {
  "organization": {
    "name": "organization",
    "verbs": [
      "get"
    ],
    "id": "id"
  },
  "clinics": {
    "name": "clinics",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id"
  },
  "products": {
    "name": "products",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "modified_at",
    "since": "modified_since"
  },
  "invoices": {
    "name": "invoices",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "invoiceLines": {
    "name": "invoice-lines",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "consumptionLogs": {
    "name": "consumption-logs",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "petBenefits": {
    "name": "pet-benefits",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "charges": {
    "name": "charges",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "chargePayments": {
    "name": "charge-payments",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "chargeAdjustments": {
    "name": "charge-adjustments",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "chargeRefunds": {
    "name": "charge-refunds",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "paymentPlans": {
    "name": "payment-plans",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "paymentIntents": {
    "name": "payment-intents",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "cancellationPaymentIntents": {
    "name": "cancellation-payment-intents",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "pets": {
    "name": "pets",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "subscriptions": {
    "name": "subscriptions",
    "verbs": [
      "search",
      "get",
      "changes"
    ],
    "id": "id",
    "time": "updated_at",
    "since": "updated_at_since"
  },
  "pspPayments": {
    "name": "psp-payments",
    "verbs": [
      "search"
    ],
    "id": "id",
    "live": true
  },
  "pspCharges": {
    "name": "psp-charges",
    "verbs": [
      "search"
    ],
    "id": "id",
    "live": true
  },
  "pspRefunds": {
    "name": "psp-refunds",
    "verbs": [
      "search"
    ],
    "id": "id",
    "live": true
  },
  "pspDisputes": {
    "name": "psp-disputes",
    "verbs": [
      "search"
    ],
    "id": "id",
    "live": true
  },
  "pspPayouts": {
    "name": "psp-payouts",
    "verbs": [
      "search"
    ],
    "id": "id",
    "live": true
  },
  "pspBalanceTransactions": {
    "name": "psp-balance-transactions",
    "verbs": [
      "search"
    ],
    "id": "id",
    "live": true
  },
  "invoiceDeletions": {
    "name": "invoice-deletions",
    "verbs": [
      "search",
      "get"
    ],
    "id": "task_id",
    "time": "scheduled_for",
    "since": "scheduled_since"
  }
} satisfies Record<string, ResourceInfo>

/** The resources of the API, by their names in its paths. */
export const resources: ReadonlyArray<ResourceInfo> = Object.values(info)

/** The resources of the API, each with its operations. */
export class Resources {
  /** An organization: the owner of clinics and of all their records. */
  readonly organization: OwnResource<Types.Organization>
  /** A clinic of the organization. */
  readonly clinics: RecordResource<Types.Clinic, Types.ClinicsSearchRequest>
  /** A product of a clinic. */
  readonly products: RecordResource<Types.Product, Types.ProductsSearchRequest>
  /** An invoice of a clinic to a client. */
  readonly invoices: RecordResource<Types.Invoice, Types.InvoicesSearchRequest>
  /** One line of an invoice. */
  readonly invoiceLines: RecordResource<Types.InvoiceLine, Types.InvoiceLinesSearchRequest>
  /** The use of a benefit by one line of an invoice. */
  readonly consumptionLogs: RecordResource<Types.ConsumptionLog, Types.ConsumptionLogsSearchRequest>
  /** A benefit that a plan grants a pet. */
  readonly petBenefits: RecordResource<Types.PetBenefit, Types.PetBenefitsSearchRequest>
  /** The amount that a client owes for an invoice, and the payments. */
  readonly charges: RecordResource<Types.Charge, Types.ChargesSearchRequest>
  /** A payment towards a charge. */
  readonly chargePayments: RecordResource<Types.ChargePayment, Types.ChargePaymentsSearchRequest>
  /** A correction of a charge's amount. */
  readonly chargeAdjustments: RecordResource<Types.ChargeAdjustment, Types.ChargeAdjustmentsSearchRequest>
  /** Money returned on a charge. */
  readonly chargeRefunds: RecordResource<Types.ChargeRefund, Types.ChargeRefundsSearchRequest>
  /** The schedule of payments of a subscription. */
  readonly paymentPlans: RecordResource<Types.PaymentPlan, Types.PaymentPlansSearchRequest>
  /** A payment that a plan schedules, and its outcome. */
  readonly paymentIntents: RecordResource<Types.PaymentIntent, Types.PaymentIntentsSearchRequest>
  /** The settlement of a cancelled plan. */
  readonly cancellationPaymentIntents: RecordResource<Types.CancellationPaymentIntent, Types.CancellationPaymentIntentsSearchRequest>
  /** A pet of a client. */
  readonly pets: RecordResource<Types.Pet, Types.PetsSearchRequest>
  /** A pet on a wellness plan. */
  readonly subscriptions: RecordResource<Types.Subscription, Types.SubscriptionsSearchRequest>
  /** A delivery of invoice deletions, and its outcome. */
  readonly invoiceDeletions: KeyedResource<Types.DeletionTask, Types.InvoiceDeletionsSearchRequest, Types.InvoiceDeletionsGetRequest>
  /** Live reads of the payment processor account that is connected to a clinic. */
  readonly psp: {
    /** The payment processor's payments of one clinic, read live. */
    readonly payments: LiveResource<Types.PspObject, Types.PspPaymentsSearchRequest>
    /** The payment processor's charges of one clinic, read live. */
    readonly charges: LiveResource<Types.PspObject, Types.PspChargesSearchRequest>
    /** The payment processor's refunds of one clinic, read live. */
    readonly refunds: LiveResource<Types.PspObject, Types.PspRefundsSearchRequest>
    /** The payment processor's disputes of one clinic, read live. */
    readonly disputes: LiveResource<Types.PspObject, Types.PspDisputesSearchRequest>
    /** The payment processor's payouts of one clinic, read live. */
    readonly payouts: LiveResource<Types.PspObject, Types.PspPayoutsSearchRequest>
    /** The payment processor's balance transactions of one clinic, read live. */
    readonly balanceTransactions: LiveResource<Types.PspObject, Types.PspBalanceTransactionsSearchRequest>
  }

  constructor(make: Make) {
    this.organization = make.own(info.organization)
    this.clinics = make.records(info.clinics)
    this.products = make.records(info.products)
    this.invoices = make.records(info.invoices)
    this.invoiceLines = make.records(info.invoiceLines)
    this.consumptionLogs = make.records(info.consumptionLogs)
    this.petBenefits = make.records(info.petBenefits)
    this.charges = make.records(info.charges)
    this.chargePayments = make.records(info.chargePayments)
    this.chargeAdjustments = make.records(info.chargeAdjustments)
    this.chargeRefunds = make.records(info.chargeRefunds)
    this.paymentPlans = make.records(info.paymentPlans)
    this.paymentIntents = make.records(info.paymentIntents)
    this.cancellationPaymentIntents = make.records(info.cancellationPaymentIntents)
    this.pets = make.records(info.pets)
    this.subscriptions = make.records(info.subscriptions)
    this.invoiceDeletions = make.keyed(info.invoiceDeletions)
    this.psp = {
      payments: make.live(info.pspPayments),
      charges: make.live(info.pspCharges),
      refunds: make.live(info.pspRefunds),
      disputes: make.live(info.pspDisputes),
      payouts: make.live(info.pspPayouts),
      balanceTransactions: make.live(info.pspBalanceTransactions)
    }
  }
}
