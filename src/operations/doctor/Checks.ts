/** The one list of checks, by subject. `at` says who runs each: a start of the service, `/health`, or the doctor. */
import type { HttpClient } from "effect/http"
import type { Role, Settings } from "../Config.ts"
import type { Check } from "./Check.ts"
import * as Database from "./DatabaseChecks.ts"
import * as MigrationsCheck from "./MigrationsCheck.ts"
import * as Service from "./ServiceChecks.ts"
import * as Configuration from "./SettingsChecks.ts"

/** Valid settings. */
export const settings: ReadonlyArray<Check<Settings>> = [
  { name: "The parameters of the URLs", at: ["start", "doctor"], run: Configuration.ignoredParameters },
  { name: "The user of the process", at: ["start"], run: () => Configuration.user },
  { name: "The public address", at: ["start", "doctor"], run: Configuration.publicAddress },
  { name: "The operators' listener", at: ["doctor"], run: Configuration.operatorsListener }
]

/** A session of a pool. */
export const session: ReadonlyArray<Check<Database.Session>> = [
  { name: "The route to the database", at: ["doctor"], run: Database.route },
  { name: "The settings of sessions", at: ["start", "doctor"], run: Database.sessionSettingsLost }
]

/** A database, without knowledge of the configuration. */
export const reached: ReadonlyArray<Check<Database.Reached>> = [
  // The doctor opens a connection, and reports why it cannot.
  { name: "Its answer", at: ["health"], run: Database.answers },
  { name: "Its replication", at: ["health", "doctor"], run: Database.replication }
]

/** The changes that a running process serves. */
export const lag: ReadonlyArray<Check<Parameters<typeof Database.lag>[0]>> = [
  { name: "Its changes", at: ["health"], run: Database.lag }
]

type Examined = Database.Examined

const isMain = ({ variable }: Examined) => variable === undefined || variable === "DATABASE_URL"
const isServer = ({ variable }: Examined) => variable !== undefined

// The login of another role may not look at them.
const hasRole = (subject: Examined, ...some: ReadonlyArray<Role>) =>
  subject.settings.roles.some((role) => some.includes(role))

/** A database of the configuration. */
export const database: ReadonlyArray<Check<Examined>> = [
  { name: "The server", at: ["doctor"], applies: isServer, run: Database.server },
  { name: "Its connections", at: ["doctor"], applies: isServer, run: Database.room },
  { name: "Its migrations", at: ["doctor"], run: MigrationsCheck.ofExamined },
  {
    name: "Its deletions",
    at: ["doctor"],
    applies: (subject) => isMain(subject) && hasRole(subject, "intake", "worker"),
    run: ({ sql }) => Database.deletions(sql)
  },
  {
    name: "Its changes",
    at: ["doctor"],
    applies: (subject) => isMain(subject) && hasRole(subject, "data-api"),
    run: ({ sql }) => Database.changes(sql)
  },
  ...reached
]

/** The circuit breaker of a running process. */
export const circuit: ReadonlyArray<Check<Parameters<typeof Service.circuit>[0]>> = [
  { name: "The processor", at: ["health"], run: Service.circuit }
]

export const processor: ReadonlyArray<Check<Service.Processor>> = [
  { name: "The processor", at: ["doctor"], run: Service.processor }
]

export const service: ReadonlyArray<Check<Settings, HttpClient.HttpClient>> = [
  { name: "The service", at: ["doctor"], run: Service.service }
]
