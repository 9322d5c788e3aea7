/** The unit of systemd, the compose file, and the rules and configurations of alerts, run by their own programs where these are installed. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Config, Effect } from "effect"
import { run } from "../../support/run.ts"

const cwd = join(import.meta.dirname, "../../../scripts/container")

const variables = ["POSTGRES_PASSWORD", "OWNER_PASSWORD", "SERVICE_PASSWORD", "STRIPE_SECRET_KEY"]

const routes = ["config", "routes", "test", "--config.file=../operations/alertmanager.yaml"]

it.effect.each([
  ["systemd takes the unit", "systemd-analyze", ["verify", "./practice-data@.service"], /^$/],
  ["compose takes its file", "docker-compose", ["--file=compose.yaml", "config", "--quiet"], /^$/],
  ["each fault fires its alert and no other", "promtool", ["test", "rules", join(import.meta.dirname, "alerts.yaml")]],
  ["Prometheus takes its configuration", "promtool", ["check", "config", "../operations/prometheus.yaml"]],
  ["Alertmanager takes its configuration", "amtool", ["check-config", "../operations/alertmanager.yaml"]],
  ["a page goes to the pager", "amtool", [...routes, "--verify.receivers=pager", "severity=page"]]
] as const)("%s, without a warning", ([, program, args, output = /^/], context) =>
  Effect.gen(function* () {
    const passwords = Object.fromEntries(variables.map((name) => [name, "of a test"]))
    const options = { cwd, env: { ...passwords, PATH: yield* Config.String("PATH") } }
    if ((yield* run(program, ["--version"], options)).code !== 0) return context.skip(`there is no ${program}`)
    const { code, stderr, stdout } = yield* run(program, args, options)
    assert.strictEqual(code, 0, stdout + stderr)
    assert.match(stdout + stderr, output)
  })
)
