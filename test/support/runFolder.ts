/** A folder for what the test files of one run share. */
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { TestProject } from "vitest/node"

declare module "vitest" {
  interface ProvidedContext {
    readonly runFolder: string
  }
}

export default async (project: TestProject) => {
  const folder = await mkdtemp(join(tmpdir(), "practice-data-run-"))
  project.provide("runFolder", folder)
  return () => rm(folder, { recursive: true, force: true, maxRetries: 5 })
}
