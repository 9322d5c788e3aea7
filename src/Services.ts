/** The services behind the endpoints: the layer graph, written once, for real and in memory. */
import { type Duration, Layer } from "effect"
import { IntakeSecrets } from "./InvoiceDeletions/IntakeSecrets.ts"
import { Scheduler } from "./InvoiceDeletions/Scheduler.ts"
import { OrgResolver } from "./Organization/OrgResolver.ts"
import { ClinicAccounts } from "./Psp/ClinicAccounts.ts"
import { PspClient } from "./Psp/PspClient.ts"
import { PspReads } from "./Psp/PspReads.ts"
import { CancellationPaymentIntents } from "./Records/CancellationPaymentIntents.ts"
import { ChargeAdjustments } from "./Records/ChargeAdjustments.ts"
import { ChargePayments } from "./Records/ChargePayments.ts"
import { ChargeRefunds } from "./Records/ChargeRefunds.ts"
import { Charges } from "./Records/Charges.ts"
import { Clinics } from "./Records/Clinics.ts"
import { ConsumptionLogs } from "./Records/ConsumptionLogs.ts"
import { InvoiceLines } from "./Records/InvoiceLines.ts"
import { Invoices } from "./Records/Invoices.ts"
import { Organizations } from "./Records/Organizations.ts"
import { PaymentIntents } from "./Records/PaymentIntents.ts"
import { PaymentPlans } from "./Records/PaymentPlans.ts"
import { PetBenefits } from "./Records/PetBenefits.ts"
import { Pets } from "./Records/Pets.ts"
import { Products } from "./Records/Products.ts"
import { Subscriptions } from "./Records/Subscriptions.ts"
import * as Postgres from "./Records/Postgres.ts"

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
