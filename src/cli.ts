import { enableCompileCache } from "node:module"

enableCompileCache()
await import("./cli/Program.ts")
