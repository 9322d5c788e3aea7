/**
 * The HTTP contract of the service. It imports nothing that serves it: the typed client and the OpenAPI document come
 * from this file alone.
 */
import { HttpApi } from "effect/http-api"
import { HealthApi } from "./Health/HealthApi.ts"
import { JsonBody } from "./Http/JsonBody.ts"
import { dataApiDocumentation, intakeDocumentation } from "./Http/Documentation.ts"
import { InvoiceDeletionsApi } from "./InvoiceDeletions/InvoiceDeletionsApi.ts"
import { Authorization } from "./Organization/Authorization.ts"
import {
  PspBalanceTransactionsApi,
  PspChargesApi,
  PspDisputesApi,
  PspPaymentsApi,
  PspPayoutsApi,
  PspRefundsApi
} from "./Psp/PspApi.ts"
import { CancellationPaymentIntentsApi } from "./Records/CancellationPaymentIntents.ts"
import { ChargeAdjustmentsApi } from "./Records/ChargeAdjustments.ts"
import { ChargePaymentsApi } from "./Records/ChargePayments.ts"
import { ChargeRefundsApi } from "./Records/ChargeRefunds.ts"
import { ChargesApi } from "./Records/Charges.ts"
import { ClinicsApi } from "./Records/Clinics.ts"
import { ConsumptionLogsApi } from "./Records/ConsumptionLogs.ts"
import { InvoiceLinesApi } from "./Records/InvoiceLines.ts"
import { InvoicesApi } from "./Records/Invoices.ts"
import { OrganizationsApi } from "./Records/Organizations.ts"
import { PaymentIntentsApi } from "./Records/PaymentIntents.ts"
import { PaymentPlansApi } from "./Records/PaymentPlans.ts"
import { PetBenefitsApi } from "./Records/PetBenefits.ts"
import { PetsApi } from "./Records/Pets.ts"
import { ProductsApi } from "./Records/Products.ts"
import { SubscriptionsApi } from "./Records/Subscriptions.ts"

/** The practice data API, version 3: read-only, every call a POST with a JSON body, relative to `/api/v3`. */
export class DataApi extends HttpApi.make("practice-data")
  .add(OrganizationsApi)
  .add(ClinicsApi)
  .add(PetsApi)
  .add(SubscriptionsApi)
  .add(PaymentPlansApi)
  .add(PaymentIntentsApi)
  .add(CancellationPaymentIntentsApi)
  .add(PetBenefitsApi)
  .add(ProductsApi)
  .add(ConsumptionLogsApi)
  .add(InvoicesApi)
  .add(InvoiceLinesApi)
  .add(ChargesApi)
  .add(ChargePaymentsApi)
  .add(ChargeAdjustmentsApi)
  .add(ChargeRefundsApi)
  .add(PspPaymentsApi)
  .add(PspChargesApi)
  .add(PspRefundsApi)
  .add(PspDisputesApi)
  .add(PspPayoutsApi)
  .add(PspBalanceTransactionsApi)
  .middleware(JsonBody)
  .middleware(Authorization)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
  .annotateMerge(dataApiDocumentation) {}

/** The intake of invoice deletions, version 1, relative to `/api/v1`. */
export class IntakeApi extends HttpApi.make("invoice-deletion-intake")
  .add(InvoiceDeletionsApi)
  .annotate(HttpApi.ParseOptions, { errors: "all" })
  .annotateMerge(intakeDocumentation) {}

/** What every process serves beside its roles, relative to `/api/v1`. */
export class OperationsApi extends HttpApi.make("operations").add(HealthApi) {}

/** All that is under `/api/v1`, as clients see it. */
export const VersionOneApi = IntakeApi.addHttpApi(OperationsApi)
