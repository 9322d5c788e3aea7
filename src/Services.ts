/** The services behind the endpoints: the layer graph, written once, for real and in memory. */
import { type Duration, Layer } from "effect"
import { IntakeSecrets } from "./deletions/IntakeSecrets.ts"
import { Scheduler } from "./deletions/Scheduler.ts"
import { OrgResolver } from "./keys/OrgResolver.ts"
import { ClinicAccounts } from "./psp/ClinicAccounts.ts"
import { PspClient } from "./psp/PspClient.ts"
import { PspReads } from "./psp/PspReads.ts"
import { CancellationPaymentIntents } from "./api/records/CancellationPaymentIntents.ts"
import { ChargeAdjustments } from "./api/records/ChargeAdjustments.ts"
import { ChargePayments } from "./api/records/ChargePayments.ts"
import { ChargeRefunds } from "./api/records/ChargeRefunds.ts"
import { Charges } from "./api/records/Charges.ts"
import { Clinics } from "./api/records/Clinics.ts"
import { ConsumptionLogs } from "./api/records/ConsumptionLogs.ts"
import { InvoiceLines } from "./api/records/InvoiceLines.ts"
import { Invoices } from "./api/records/Invoices.ts"
import { Organizations } from "./api/records/Organizations.ts"
import { PaymentIntents } from "./api/records/PaymentIntents.ts"
import { PaymentPlans } from "./api/records/PaymentPlans.ts"
import { PetBenefits } from "./api/records/PetBenefits.ts"
import { Pets } from "./api/records/Pets.ts"
import { Products } from "./api/records/Products.ts"
import { Subscriptions } from "./api/records/Subscriptions.ts"
import * as Postgres from "./records/Postgres.ts"

/** The repositories over the record database. */
const repositories = Layer.mergeAll(
  Organizations.layerFrom(Postgres.make),
  Clinics.layerFrom(Postgres.make),
  Pets.layerFrom(Postgres.make),
  Subscriptions.layerFrom(Postgres.make),
  PaymentPlans.layerFrom(Postgres.make),
  PaymentIntents.layerFrom(Postgres.make),
  CancellationPaymentIntents.layerFrom(Postgres.make),
  PetBenefits.layerFrom(Postgres.make),
  Products.layerFrom(Postgres.make),
  ConsumptionLogs.layerFrom(Postgres.make),
  Invoices.layerFrom(Postgres.make),
  InvoiceLines.layerFrom(Postgres.make),
  Charges.layerFrom(Postgres.make),
  ChargePayments.layerFrom(Postgres.make),
  ChargeAdjustments.layerFrom(Postgres.make),
  ChargeRefunds.layerFrom(Postgres.make)
)

/** What the data API needs, over the record and credential databases and a processor. */
export const layer = Layer.mergeAll(
  repositories,
  OrgResolver.layer,
  PspReads.layer.pipe(Layer.provide(ClinicAccounts.layer))
)

/** What the intake needs, over the task database. */
export const layerIntake = (delay: Duration.Duration) => Layer.merge(Scheduler.layer(delay), IntakeSecrets.layer)

const emptyRepositories = Layer.mergeAll(
  Organizations.layerMemory(),
  Clinics.layerMemory(),
  Pets.layerMemory(),
  Subscriptions.layerMemory(),
  PaymentPlans.layerMemory(),
  PaymentIntents.layerMemory(),
  CancellationPaymentIntents.layerMemory(),
  PetBenefits.layerMemory(),
  Products.layerMemory(),
  ConsumptionLogs.layerMemory(),
  Invoices.layerMemory(),
  InvoiceLines.layerMemory(),
  Charges.layerMemory(),
  ChargePayments.layerMemory(),
  ChargeAdjustments.layerMemory(),
  ChargeRefunds.layerMemory()
)

/** What the data API needs, in memory and without any record or key: merge the fakes of your own over it. */
export const layerMemory = Layer.mergeAll(
  emptyRepositories,
  OrgResolver.layerMemory({}),
  // Fresh, so that a layer of PspReads that is merged over this one is built over its own fakes.
  Layer.fresh(PspReads.layer).pipe(Layer.provide([ClinicAccounts.layerMemory(), PspClient.layerNotConfigured]))
)
