/** A variable one slip away from one of ours, which would be ignored in silence. */
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { readSettings, variables } from "../../../src/operations/Settings.ts"
import { variables as otlpVariables } from "../../../src/observability/OtlpConfig.ts"
import * as Failure from "../../../src/process/Failure.ts"
import * as Variable from "../../../src/process/Variable.ts"
import { runWith } from "../../support/cli.ts"

const namesOf = (configs: ReadonlyArray<Parameters<typeof Variable.namesOf>[0]>) =>
  Effect.map(Effect.forEach(configs, Variable.namesOf), (names) => names.flat())

/** Every word that one letter dropped, swapped with the next, replaced or added makes of another. */
const slipsOf = (name: string) => {
  const slips = Array.from({ length: name.length + 1 }, (_, at) => {
    const [before, letter = "", next = "", after] = [name.slice(0, at), name[at], name[at + 1], name.slice(at + 2)]
    const other = letter === "X" ? "Y" : "X"
    return [
      before + next + after,
      before + next + letter + after,
      before + other + next + after,
      before + other + letter + next + after
    ]
  })
  return new Set(slips.flat())
}

const complaint = (environment: Readonly<Record<string, string>>) =>
  Effect.flip(readSettings).pipe(
    Effect.map(Failure.explain),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { ...environment } }))
  )

it.effect("Each slip of each name that is not short is caught", () =>
  Effect.gen(function* () {
    const ofService = yield* namesOf([...Object.values<(typeof otlpVariables)[number]>(variables), ...otlpVariables])
    assert.includeMembers(ofService, ["HOST", "DATABASE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"])
    for (const name of ofService.filter(({ length }) => length >= 6)) {
      for (const slip of slipsOf(name)) {
        if (!ofService.includes(slip)) assert.isDefined(Variable.meantBy(slip, ofService), slip)
      }
    }
  })
)

it.effect("A start with such a variable fails, and names both", () =>
  Effect.gen(function* () {
    assert.strictEqual(
      yield* complaint({ DATABSE_URL: "postgres://someone:s3cret@host/db" }),
      "Invalid configuration. DATABSE_URL: unknown; if you meant DATABASE_URL, rename it, otherwise unset it"
    )
    const { code, stderr } = yield* runWith({ DATABSE_URL: "x" }, ["keys", "list"])
    assert.strictEqual(code, 1)
    assert.include(stderr, "DATABSE_URL: unknown; if you meant DATABASE_URL")
  })
)

/** Of systems, shells, npm, Kubernetes, clouds, Postgres and OpenTelemetry: none of them is read. */
const ordinary = `
  PATH HOME USER SHELL PWD LANG TERM TZ TMPDIR HOSTNAME HOSTTYPE CI DEBUG VERBOSE HOSTS PORTS ROLE ROLLES DRAINS
  XDG_DATA_DIRS XDG_DATA_HOME NODE_ENV NODE_OPTIONS npm_lifecycle_event PRACTICE_DATA_SERVICE_PORT PRACTICE_DATA_PORT_3000_TCP
  DATABASE_SERVICE_HOST DATABASE_HOST DATABASE_NAME DATABASE_USER DB_URL DIRECT_URL PGHOST PGDATABASE REDIS_URL
  STRIPE_WEBHOOK_SECRET STRIPE_PUBLISHABLE_KEY STRIPE_API_KEY STRIPE_ACCOUNT WEB_CONCURRENCY HTTP_PROXY
  OTEL_LOG_LEVEL OTEL_PROPAGATORS OTEL_EXPORTER_OTLP_INSECURE OTEL_EXPORTER_OTLP_CERTIFICATE OTEL_METRICS_EXEMPLAR_FILTER
`

it.effect("An ordinary environment is nobody's slip", () =>
  Effect.gen(function* () {
    const env = Object.fromEntries((ordinary.match(/\w+/g) ?? []).map((name) => [name, "x"]))
    const provided = Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
    yield* provided(readSettings)
  })
)
