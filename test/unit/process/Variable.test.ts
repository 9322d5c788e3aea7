/** A variable one slip away from one of ours, which would be ignored in silence. */
import { assert, it } from "@effect/vitest"
import { ConfigProvider, Effect } from "effect"
import { config, variables } from "../../../src/operations/Config.ts"
import * as Connection from "../../../src/cli/Connection.ts"
import { variables as otlpVariables } from "../../../src/observability/OtlpConfig.ts"
import * as Failure from "../../../src/process/Failure.ts"
import * as Variable from "../../../src/process/Variable.ts"
import { runWith } from "../../support/cli.ts"

const namesOf = (configs: ReadonlyArray<Parameters<typeof Variable.namesOf>[0]>) =>
  Effect.map(Effect.forEach(configs, Variable.namesOf), (names) => names.flat())

const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ_"

/** Every word that one letter dropped, swapped with the next, replaced or added makes of another. */
const slipsOf = (name: string) => {
  const slips = Array.from({ length: name.length + 1 }, (_, at) => {
    const [before, letter = "", next = "", after] = [name.slice(0, at), name[at], name[at + 1], name.slice(at + 2)]
    const other = letters[(at * 7 + name.length) % letters.length] ?? "X"
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
  Effect.flip(config).pipe(
    Effect.map(Failure.explain),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { ...environment } }))
  )

it.effect("Each slip of each name that is not short is caught", () =>
  Effect.gen(function* () {
    const ofService = yield* namesOf([...Object.values<(typeof otlpVariables)[number]>(variables), ...otlpVariables])
    const ofClients = yield* namesOf(Object.values<(typeof otlpVariables)[number]>(Connection.variables))
    assert.includeMembers(ofService, ["HOST", "DATABASE_URL", "OTEL_EXPORTER_OTLP_ENDPOINT"])
    assert.lengthOf(ofClients, 3)
    for (const known of [ofService, ofClients]) {
      for (const name of known.filter(({ length }) => length >= 6)) {
        for (const slip of slipsOf(name)) {
          if (!known.includes(slip)) assert.isDefined(Variable.meantBy(slip, known), slip)
        }
      }
    }
  })
)

it.effect("A start with such a variable fails, and names both", () =>
  Effect.gen(function* () {
    assert.strictEqual(
      yield* complaint({ DATABSE_URL: "postgres://someone:s3cret@host/db" }),
      "The configuration is wrong. DATABSE_URL: nothing reads it, and DATABASE_URL does: rename or unset it"
    )
    for (const args of [
      ["get", "organization"],
      ["send", "--organization", "o", "--invoice", "i"]
    ]) {
      const { code, stderr } = yield* runWith(
        { PRACTICE_DATA_API_KYE: "k", PRACTICE_DATA_URL: "http://127.0.0.1:1" },
        args
      )
      assert.strictEqual(code, 1)
      assert.match(stderr, /PRACTICE_DATA_API_KYE: nothing reads it, and PRACTICE_DATA_API_KEY does/)
    }
    const { code, stderr } = yield* runWith({ DATABSE_URL: "x" }, ["keys", "list"])
    assert.strictEqual(code, 1)
    assert.include(stderr, "DATABSE_URL")
  })
)

/** Of systems, shells, npm, Kubernetes, clouds, Postgres and OpenTelemetry: none of them is read. */
const ordinary = `
  PATH HOME USER LOGNAME SHELL PWD OLDPWD SHLVL LANG LC_ALL TERM TZ TMPDIR EDITOR PAGER HOSTNAME HOSTTYPE OSTYPE DISPLAY
  XDG_DATA_DIRS XDG_DATA_HOME XDG_RUNTIME_DIR SSH_AUTH_SOCK LS_COLORS COLORTERM NO_COLOR FORCE_COLOR CI DEBUG VERBOSE HOSTS PORTS
  ROLE ROLLES DRAINS NODE_ENV NODE_OPTIONS NODE_PATH NODE_VERSION NODE_COMPILE_CACHE YARN_VERSION INIT_CWD
  npm_config_loglevel npm_config_cache npm_package_name npm_lifecycle_event npm_execpath npm_command
  KUBERNETES_SERVICE_HOST KUBERNETES_SERVICE_PORT KUBERNETES_PORT KUBERNETES_PORT_443_TCP KUBERNETES_PORT_443_TCP_ADDR
  PRACTICE_DATA_SERVICE_HOST PRACTICE_DATA_SERVICE_PORT PRACTICE_DATA_PORT PRACTICE_DATA_PORT_3000_TCP
  DATABASE_SERVICE_HOST DATABASE_PORT DATABASE_HOST DATABASE_NAME DATABASE_USER DATABASE_PASSWORD DB_URL DIRECT_URL
  PGHOST PGPORT PGUSER PGPASSWORD PGDATABASE PGDATA PGSSLMODE POSTGRES_URL POSTGRES_PASSWORD REDIS_URL
  STRIPE_WEBHOOK_SECRET STRIPE_PUBLISHABLE_KEY STRIPE_API_KEY STRIPE_ACCOUNT AWS_REGION AWS_SECRET_ACCESS_KEY
  GOOGLE_APPLICATION_CREDENTIALS AZURE_CLIENT_ID HEROKU_APP_NAME DYNO WEB_CONCURRENCY MEMORY_AVAILABLE FLY_REGION
  HTTP_PROXY HTTPS_PROXY NO_PROXY SSL_CERT_FILE GITHUB_ACTIONS GITHUB_TOKEN RUNNER_TEMP DOCKER_HOST container
  OTEL_LOG_LEVEL OTEL_PROPAGATORS OTEL_BSP_EXPORT_TIMEOUT OTEL_BLRP_EXPORT_TIMEOUT OTEL_METRIC_EXPORT_TIMEOUT
  OTEL_ATTRIBUTE_COUNT_LIMIT OTEL_SPAN_EVENT_COUNT_LIMIT OTEL_EXPORTER_OTLP_INSECURE OTEL_EXPORTER_OTLP_CERTIFICATE
  OTEL_EXPORTER_OTLP_METRICS_DEFAULT_HISTOGRAM_AGGREGATION OTEL_METRICS_EXEMPLAR_FILTER OTEL_NODE_RESOURCE_DETECTORS
  OTEL_EXPORTER_OTLP_TRACES_CERTIFICATE OTEL_EXPORTER_JAEGER_ENDPOINT OTEL_EXPORTER_ZIPKIN_ENDPOINT OTEL_CONFIG_FILE
`

it.effect("An ordinary environment is nobody's slip", () =>
  Effect.gen(function* () {
    const env = Object.fromEntries(
      ordinary
        .trim()
        .split(/\s+/)
        .map((name) => [name, "x"])
    )
    const provided = Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env }))
    yield* provided(config)
    yield* provided(Connection.refuseSlips)
  })
)
