/** The log of a start: its address and what is open there, the operators' page, and the findings of checks. */
import { Duration, Effect, Option, Redacted, Result, Schedule } from "effect"
import { HttpServer } from "effect/http"
import { connectionOptions, format } from "../database/ConnectionUrl.ts"
import { CredentialDatabase, RecordDatabase, TaskDatabase } from "../database/Database.ts"
import { poolsOf } from "../database/Databases.ts"
import { organizations } from "../demo/DemoData.ts"
import { LogWriter } from "../observability/LogWriter.ts"
import type { Fact } from "../operations/Check.ts"
import { sessionSettingsLost } from "../operations/doctor/DatabaseChecks.ts"
import { openFiles, publicAddress, reachable, user } from "../operations/doctor/ServiceChecks.ts"
import { OperatorsPage } from "../operations/OperationsListener.ts"
import type { Settings } from "../operations/Settings.ts"

const log = ({ advice, message }: Fact) =>
  advice === undefined ? Effect.log(message) : Effect.logWarning(`${message} ${advice}`)

/** Logs the findings of the checks that a start makes; of sessions, their problems as soon as a database answers. */
const logFindings = Effect.fnUntraced(function* (settings: Settings) {
  const found = [user, openFiles, publicAddress].flatMap((check) => check(settings))
  yield* Effect.forEach(found, log, { discard: true })
  if (Option.isNone(settings.databaseUrl)) return
  const pools = poolsOf(settings, settings.databaseUrl.value)
  const ofDataApi = [
    { variable: "READ_DATABASE_URL", pool: pools.records, sql: yield* RecordDatabase },
    { variable: "CREDENTIALS_DATABASE_URL", pool: pools.credentials, sql: yield* CredentialDatabase }
  ]
  const subjects = [
    ...(settings.roles.includes("data-api") ? ofDataApi : []),
    { variable: "DATABASE_URL", pool: pools.tasks, sql: yield* TaskDatabase }
  ]
  const request = { key: "the settings", within: Duration.seconds(5), unavailable: () => "no answer" as const }
  for (const subject of subjects) {
    yield* Effect.retry(subject.sql.run(request, sessionSettingsLost(subject)), Schedule.spaced("1 second")).pipe(
      Effect.map((findings) => findings.filter(({ status }) => status !== "ok")),
      Effect.flatMap(Effect.forEach(log)),
      Effect.forkScoped
    )
  }
})

const logOperatorsPage = Effect.flatMap(
  Effect.serviceOption(OperatorsPage),
  Option.match({ onNone: () => Effect.void, onSome: ({ url }) => Effect.log(`Operators' page: ${reachable(url)}`) })
)

const demoNotice = (address: string) => `
  Using the embedded database with demo data. API keys:
${organizations.map(({ slug, key }) => `    ${key}  (org_${slug})`).join("\n")}

  Try it:
    curl -s ${address}/api/v3/charges/search -H 'Authorization: Bearer ${organizations[0].key}' -H 'Content-Type: application/json' -d '{"limit":2}'

  Documentation: ${address}/api/v3/docs and ${address}/api/v1/docs

`

/** A misspelled variable shows here: without DATABASE_URL, the service runs the demo. */
const databaseName = ({ dataDir, databaseUrl }: Settings) =>
  Option.match(databaseUrl, {
    onNone: () => `the embedded database in ${dataDir}`,
    // The configuration has checked it.
    onSome: (url) => format({ ...Result.getOrThrow(connectionOptions(Redacted.value(url))), user: undefined })
  })

/** Logs that the service listens. */
export const announce = Effect.fnUntraced(function* (settings: Settings) {
  const { address } = yield* HttpServer.HttpServer
  const url = HttpServer.formatAddress(address)
  yield* Effect.log(`Listening on ${url}, over ${databaseName(settings)}`)
  yield* logFindings(settings)
  if (Option.isNone(settings.databaseUrl)) {
    // The keys of the demo data are no secret, and the log has none.
    if (settings.logFormat === "pretty") (yield* LogWriter).write(demoNotice(reachable(url)), true)
    else yield* Effect.log(`Using the embedded database with demo data: see ${reachable(url)}/api/v3/docs`)
  }
  yield* logOperatorsPage
})
