import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Command } from "effect/cli"
import packageJson from "../../package.json" with { type: "json" }
import { command } from "./Cli.ts"
import * as Failure from "../Failure.ts"

Command.run(command, { version: packageJson.version }).pipe(
  Effect.tapErrorTag(["ConfigError", "EmbeddedDatabaseError", "MigrationError", "SqlError"], Failure.report),
  Effect.provide(NodeServices.layer),
  NodeRuntime.runMain({ disableErrorReporting: true })
)
