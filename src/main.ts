import { NodeRuntime } from "@effect/platform-node"
import { Layer } from "effect"
import * as Launch from "./Launch.ts"

NodeRuntime.runMain(Layer.launch(Launch.layer))
