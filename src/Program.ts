import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import { Cause, Effect, Exit, Layer, Runtime } from "effect"
import * as Failure from "./process/Failure.ts"
import * as Launch from "./App.ts"
import * as StopSignals from "./process/StopSignals.ts"

StopSignals.endAtTheSecond()

Layer.launch(Launch.layer).pipe(
  Effect.tapErrorTag(
    ["ConfigError", "EmbeddedDatabaseError", "MigrationError", "ServeError", "SqlError"],
    Failure.report
  ),
  NodeRuntime.runMain({
    disableErrorReporting: true,
    // A stop signal is how the service is meant to end.
    teardown: (exit, onExit) =>
      Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause) ? onExit(0) : Runtime.defaultTeardown(exit, onExit)
  })
)
