#!/usr/bin/env node
// oxlint-disable-next-line import/no-unassigned-import -- it ends an older Node
import "./requireNode.cjs"

// An older Node lacks it: a static import would fail before the line above says what to do.
const { enableCompileCache } = await import("node:module")
enableCompileCache()
await import("./cli/Program.ts")
