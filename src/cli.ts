import { enableCompileCache } from "node:module"

enableCompileCache()
await import("./Cli/Program.ts")
