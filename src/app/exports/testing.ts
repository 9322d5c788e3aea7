/**
 * The entry for tests: the services of the APIs in memory, each with its fake (`layerMemory`; that of `Scheduler` is
 * `MemoryScheduler.layer`), records, the demo data.
 */
import { type Duration, Layer } from "effect"
import * as MemoryScheduler from "../../deletions/MemoryScheduler.ts"
import { SenderTasks } from "../../deletions/SenderTasks.ts"
import { IntakeSecrets } from "../../intake/Signatures.ts"
import { OrgResolver } from "../../keys/OrgResolver.ts"
import { PspReads } from "../../psp/PspReads.ts"
import { Repositories } from "../../records/Repository.ts"

export * as DemoData from "../demo/DemoData.ts"
export { Scheduler } from "../../deletions/Scheduler.ts"
export { HealthChecks } from "../../operations/HealthChecks.ts"
export { AccountDisconnected, CursorUnknown, PspClient, PspFailed, RateLimited } from "../../psp/PspClient.ts"
export { ClinicAccounts } from "../../psp/PspReads.ts"
export { build } from "../../records/Rows.ts"
export { IntakeSecrets, MemoryScheduler, OrgResolver, PspReads, Repositories, SenderTasks }

/**
 * The services of the data API in memory, without any record, key or task, and without a processor: merge your own fakes
 * over it.
 */
export const servicesMemory = Layer.mergeAll(
  Repositories.layerMemory(),
  OrgResolver.layerMemory({}),
  SenderTasks.layerMemory(),
  PspReads.layerMemory()
)

/** The services of the intake in memory, without any task or secret. Without a delay, a task is due at once. */
export const intakeServicesMemory = (delay: Duration.Duration) =>
  Layer.merge(MemoryScheduler.layer(delay), IntakeSecrets.layerMemory())
