/** The layers that serve the APIs, to mount them in an Effect server of your own. */
export * as App from "../App.ts"
export * as Settings from "../../operations/Settings.ts"
export * as Databases from "../../database/Databases.ts"
export {
  ChangeDatabase,
  CredentialDatabase,
  type Database,
  EmbeddedDatabaseError,
  RecordDatabase,
  TaskDatabase
} from "../../database/Database.ts"
export * as Migrations from "../../database/Migrations.ts"
export { CannotMigrate } from "../../database/Migrations.ts"
export { IntakeSecrets, SignaturesRequired } from "../../intake/Signatures.ts"
export * as Retention from "../../deletions/Retention.ts"
export { Scheduler } from "../../deletions/Scheduler.ts"
export { SenderTasks } from "../../deletions/SenderTasks.ts"
export * as Worker from "../../deletions/Worker.ts"
export { HealthChecks } from "../../operations/HealthChecks.ts"
export { Listener } from "../../http/Listener.ts"
export * as ApiKeys from "../../keys/ApiKeys.ts"
export { layerLimit as layerRequestLimit } from "../../keys/AuthorizationServer.ts"
export { OrgResolver } from "../../keys/OrgResolver.ts"
export { PspClient } from "../../psp/PspClient.ts"
export { ClinicAccounts, PspReads } from "../../psp/PspReads.ts"
export { ChangeClock } from "../../changes/ChangeClock.ts"
export type { Changes, ChangesRequest, Feed } from "../../changes/Feed.ts"
export { CannotListen } from "../../operations/OperationsListener.ts"
export { Repositories, type Repository } from "../../records/Repository.ts"
export * as Server from "../Server.ts"
