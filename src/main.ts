import { enableCompileCache } from "node:module"

// What was compiled for one start is there for the next.
enableCompileCache()
const { run } = await import("./app/App.ts")
run()
