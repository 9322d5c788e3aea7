/**
 * The package's entry for tests: all services of the APIs in memory, each service with its fake (`layerMemory`), records, and the demo
 * data.
 */
export { intakeServicesMemory, servicesMemory } from "../app/App.ts"
export * as DemoData from "../demo/DemoData.ts"
export * as DemoProcessor from "../demo/DemoProcessor.ts"
export { IntakeSecrets } from "../deletions/IntakeSecrets.ts"
export { Scheduler } from "../deletions/Scheduler.ts"
export { TaskReads } from "../deletions/TaskReads.ts"
export { HealthChecks } from "../operations/HealthChecks.ts"
export { OrgResolver } from "../keys/OrgResolver.ts"
export { ClinicAccounts } from "../psp/ClinicAccounts.ts"
export { PspClient } from "../psp/PspClient.ts"
export { PspReads } from "../psp/PspReads.ts"
export { Repositories } from "../records/Repository.ts"
export { build } from "../records/Rows.ts"
