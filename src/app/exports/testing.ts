/**
 * The entry for tests: the services of the APIs in memory, each with its fake (`layerMemory`; that of `Scheduler` is
 * `MemoryScheduler.layer`), records, the demo data.
 */
export { intakeServicesMemory, servicesMemory } from "../App.ts"
export * as DemoData from "../../demo/DemoData.ts"
export * as DemoProcessor from "../../demo/DemoProcessor.ts"
export { IntakeSecrets } from "../../intake/IntakeSecrets.ts"
export * as MemoryScheduler from "../../deletions/MemoryScheduler.ts"
export { Scheduler } from "../../deletions/Scheduler.ts"
export { SenderTasks } from "../../deletions/SenderTasks.ts"
export { HealthChecks } from "../../operations/HealthChecks.ts"
export { OrgResolver } from "../../keys/OrgResolver.ts"
export { AccountDisconnected, CursorUnknown, PspClient, PspFailed, RateLimited } from "../../psp/PspClient.ts"
export { ClinicAccounts, PspReads } from "../../psp/PspReads.ts"
export { Repositories } from "../../records/Repository.ts"
export { build } from "../../records/Rows.ts"
