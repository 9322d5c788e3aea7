#!/usr/bin/env node
import "./requireNode.cjs"

// An older Node does not have it, so that a static import would fail before the line above says so.
const { enableCompileCache } = await import("node:module")
enableCompileCache()
await import("./cli/Program.ts")
