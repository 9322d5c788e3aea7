/**
 * The contract of the data API. Nothing in this folder imports what serves it: the typed client and the OpenAPI
 * document come from here alone.
 */
import { Record } from "effect"
import { HttpApi } from "effect/http-api"
import { JsonBody } from "./JsonBody.ts"
import { dataApiDocumentation } from "./OpenApi.ts"
import { Authorization } from "./Authorization.ts"
import { pspGroups } from "./Psp.ts"
import { CancellationPaymentIntentsApi } from "./records/CancellationPaymentIntents.ts"
import { ChargeAdjustmentsApi } from "./records/ChargeAdjustments.ts"
import { ChargePaymentsApi } from "./records/ChargePayments.ts"
import { ChargeRefundsApi } from "./records/ChargeRefunds.ts"
import { ChargesApi } from "./records/Charges.ts"
import { ClinicsApi } from "./records/Clinics.ts"
import { ConsumptionLogsApi } from "./records/ConsumptionLogs.ts"
import { InvoiceLinesApi } from "./records/InvoiceLines.ts"
import { InvoicesApi } from "./records/Invoices.ts"
import { OrganizationsApi } from "./records/Organizations.ts"
import { PaymentIntentsApi } from "./records/PaymentIntents.ts"
import { PaymentPlansApi } from "./records/PaymentPlans.ts"
import { PetBenefitsApi } from "./records/PetBenefits.ts"
import { PetsApi } from "./records/Pets.ts"
import { ProductsApi } from "./records/Products.ts"
import { SubscriptionsApi } from "./records/Subscriptions.ts"

/** The practice data API, version 3: read-only, every call a POST with a JSON body, relative to `/api/v3`. */
export class DataApi extends HttpApi.make("practice-data")
  .add(
    OrganizationsApi,
    ClinicsApi,
    PetsApi,
    SubscriptionsApi,
    PaymentPlansApi,
    PaymentIntentsApi,
    CancellationPaymentIntentsApi,
    PetBenefitsApi,
    ProductsApi,
    ConsumptionLogsApi,
    InvoicesApi,
    InvoiceLinesApi,
    ChargesApi,
    ChargePaymentsApi,
    ChargeAdjustmentsApi,
    ChargeRefundsApi,
    ...Record.values(pspGroups)
  )
  .middleware(JsonBody)
  .middleware(Authorization)
  .annotate(HttpApi.PayloadParseOptions, { errors: "all", onExcessProperty: "error" })
  .annotateMerge(dataApiDocumentation) {}
