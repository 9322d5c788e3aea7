/** The lines of a start: the address of the service, its database, and the operators' page. */
import { Effect, Option, Redacted, Result } from "effect"
import { connectionOptions, format } from "../database/ConnectionUrl.ts"
import { organizations } from "./demo/DemoData.ts"
import { Listener } from "../http/Listener.ts"
import { LogWriter } from "../observability/Logging.ts"
import { OperatorsPage } from "../operations/OperationsListener.ts"
import type { Settings } from "../operations/Settings.ts"

/** An address to listen on, as this machine reaches it. */
const reachable = (address: string) => address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")

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
  const { url } = yield* Listener
  yield* Effect.log(`Listening on ${url}, over ${databaseName(settings)}`)
  if (Option.isNone(settings.databaseUrl)) {
    // The keys of the demo data are no secret, and the log has none.
    if (settings.logFormat === "pretty") (yield* LogWriter).write(demoNotice(reachable(url)), true)
    else yield* Effect.log(`Using the embedded database with demo data: see ${reachable(url)}/api/v3/docs`)
  }
  const page = yield* Effect.serviceOption(OperatorsPage)
  if (Option.isSome(page)) yield* Effect.log(`Operators' page: ${reachable(page.value.url)}`)
})
