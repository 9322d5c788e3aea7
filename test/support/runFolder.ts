/** A folder for what the test files of one run share. */
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly runFolder: string
  }
}

export default (project: TestProject) => {
  const folder = mkdtempSync(join(tmpdir(), "practice-data-run-"))
  project.provide("runFolder", folder)
  return () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
}
