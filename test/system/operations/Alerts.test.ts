/** The rules and the configurations of alerts, run by promtool and amtool where they are installed. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"

const tool = (name: string, ...args: ReadonlyArray<string>) =>
  Effect.try(() => execFileSync(name, args, { encoding: "utf8", timeout: 60_000, stdio: "pipe" }))

const shipped = (file: string) => join(import.meta.dirname, "../../../scripts/operations", file)

const alertmanager = shipped("alertmanager.yaml")

it.effect.each([
  ["each fault fires its alert and no other", "promtool", ["test", "rules", join(import.meta.dirname, "alerts.yaml")]],
  ["Prometheus takes its configuration", "promtool", ["check", "config", shipped("prometheus.yaml")]],
  ["Alertmanager takes its configuration", "amtool", ["check-config", alertmanager]],
  [
    "a page goes to the pager",
    "amtool",
    ["config", "routes", "test", `--config.file=${alertmanager}`, "--verify.receivers=pager", "severity=page"]
  ]
] as const)("%s", ([, name, args], context) =>
  tool(name, "--version").pipe(
    Effect.catch(() => Effect.sync(() => context.skip(`there is no ${name}`))),
    Effect.andThen(tool(name, ...args))
  )
)
