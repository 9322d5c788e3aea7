#!/usr/bin/env node
// oxlint-disable-next-line import/no-unassigned-import -- it ends an older Node
import "./preload.cjs"

const { main } = await import("./cli/Cli.ts")
main()
