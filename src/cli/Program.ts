import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { run } from "./Cli.ts"
import { exitCode } from "./Usage.ts"

// The shell's code of a program whose reader has left, as `head` does.
const readerLeft = 141
process.stdout.on("error", () => process.exit(readerLeft))

// What interrupts a command ends it with the shell's code of that signal.
let terminated = false
process.once("SIGTERM", () => (terminated = true))
const codeOf = (code: number) => (terminated && code === 130 ? 143 : code)

run(process.argv.slice(2)).pipe(
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({ disableErrorReporting: true, teardown: (exit, onExit) => onExit(codeOf(exitCode(exit))) })
)
