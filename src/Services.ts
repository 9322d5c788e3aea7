/** The services behind the endpoints: the layer graph, written once, for real and in memory. */
import { type Duration, Layer } from "effect"
import { IntakeSecrets } from "./deletions/IntakeSecrets.ts"
import { Scheduler } from "./deletions/Scheduler.ts"
import { OrgResolver } from "./keys/OrgResolver.ts"
import { ClinicAccounts } from "./psp/ClinicAccounts.ts"
import { PspClient } from "./psp/PspClient.ts"
import { PspReads } from "./psp/PspReads.ts"
import { Repositories } from "./records/Repositories.ts"

/** What the data API needs, over the record and credential databases and a processor. */
export const layer = Layer.mergeAll(
  Repositories.layer,
  OrgResolver.layer,
  PspReads.layer.pipe(Layer.provide(ClinicAccounts.layer))
)

/** What the intake needs, over the task database. */
export const layerIntake = (delay: Duration.Duration) => Layer.merge(Scheduler.layer(delay), IntakeSecrets.layer)

/** What the data API needs, in memory and without any record or key: merge the fakes of your own over it. */
export const layerMemory = Layer.mergeAll(
  Repositories.layerMemory(),
  OrgResolver.layerMemory({}),
  // Fresh, so that a layer of PspReads that is merged over this one is built over its own fakes.
  Layer.fresh(PspReads.layer).pipe(Layer.provide([ClinicAccounts.layerMemory(), PspClient.layerNotConfigured]))
)
