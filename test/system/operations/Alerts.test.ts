/** `alerts.yaml` beside this file, run by promtool where it is installed. */
import { execFileSync } from "node:child_process"
import { join } from "node:path"
import { it } from "@effect/vitest"
import { Effect } from "effect"

const promtool = (...args: ReadonlyArray<string>) =>
  Effect.try(() => execFileSync("promtool", args, { encoding: "utf8", timeout: 60_000, stdio: "pipe" }))

it.effect("each fault fires its alert and no other, and a healthy service none", (context) =>
  promtool("--version").pipe(
    Effect.catch(() => Effect.sync(() => context.skip("there is no promtool"))),
    Effect.andThen(promtool("test", "rules", join(import.meta.dirname, "alerts.yaml")))
  )
)
