/** The unit of systemd and the compose file, checked by their own programs where these are installed. */
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Config, Effect } from "effect"
import { run } from "../../support/run.ts"

const cwd = join(import.meta.dirname, "../../../scripts/container")

const passwords = Object.fromEntries(
  ["POSTGRES_PASSWORD", "OWNER_PASSWORD", "SERVICE_PASSWORD", "OPERATIONS_TOKEN", "STRIPE_SECRET_KEY"].map((name) => [
    name,
    "of a test"
  ])
)

it.effect.each([
  ["systemd takes the unit", "systemd-analyze", ["verify", "./practice-data.service"]],
  ["compose takes its file", "docker-compose", ["--file=compose.yaml", "config", "--quiet"]]
] as const)("%s without a warning", ([, program, args], context) =>
  Effect.gen(function* () {
    const options = { cwd, env: { ...passwords, PATH: yield* Config.String("PATH") } }
    if ((yield* run(program, ["--version"], options)).code !== 0) return context.skip(`there is no ${program}`)
    assert.deepStrictEqual(yield* run(program, args, options), { code: 0, stdout: "", stderr: "" })
  })
)
