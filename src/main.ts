import { enableCompileCache } from "node:module"

// What was compiled for one start is there for the next.
enableCompileCache()
await import("./Program.ts")
