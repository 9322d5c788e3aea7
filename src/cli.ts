#!/usr/bin/env node
// An older Node lacks some of what is imported after this: a static import of it would fail first.
await import("./requireNode.cjs")
const { enableCompileCache } = await import("node:module")
enableCompileCache()
await import("./cli/Program.ts")
