#!/usr/bin/env node
// oxlint-disable-next-line import/no-unassigned-import -- it ends an older Node
import "./preload.cjs"

const loaded = await import("./cli/Cli.ts").catch((error: unknown) => {
  // npm leaves them out where it is told to.
  if (!/Cannot find package '@?effect/.test(String(error))) throw error
  process.stderr.write(
    "practice-data needs its peer dependencies: npm install effect @effect/platform-node @effect/sql-pg\n"
  )
  process.exitCode = 1
})
loaded?.main()
