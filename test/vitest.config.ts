import { readFileSync } from "node:fs"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** The longest files, most of which wait for tools that they start: each would otherwise be the last to end. */
const longest = [
  "system/package/Package",
  "system/api/Generated",
  "system/browser/Pages",
  "system/operations/Runbook",
  "system/database/Restore",
  "system/process/StartAndStop",
  "system/database/Lifecycle",
  "system/database/Embedded",
  "system/cli/Clients",
  "integration/deletions/Facts",
  "integration/deletions/Deletion",
  "integration/changes/AllChanges",
  "integration/psp/PspClient",
  "integration/operations/Health",
  "integration/records/Repository",
  "integration/database/Costs",
  "integration/database/ChangesCosts",
  "integration/deletions/WayBack",
  "integration/cli/load/Load",
  "integration/database/Changes",
  "integration/cli/Commands",
  "integration/cli/sync/Targets",
  "integration/cli/sync/Sync"
].map((name) => `/test/${name}.test.ts`)

const rank = ({ moduleId }: TestSpecification) => {
  const found = longest.findIndex((name) => moduleId.endsWith(name))
  return found === -1 ? longest.length : found
}

/** True if `npm test` leaves out all tests of a file, so that it need not be loaded. */
const isLeftOut = (tagsFilter: string, { moduleId }: TestSpecification) =>
  tagsFilter.startsWith("!long") && /@module-tag (long|browser)\b/.test(readFileSync(moduleId, "utf8"))

/**
 * Begins with the longest files. How long a file took before says nothing: `npm test` and `npm run test:long` each leave
 * out tests of it.
 */
class LongestFirst extends BaseSequencer {
  override sort(files: Array<TestSpecification>) {
    const [tagsFilter = ""] = this.ctx.config.tagsFilter ?? []
    const read = files.filter((file) => !isLeftOut(tagsFilter, file))
    return Promise.resolve(read.toSorted((a, b) => rank(a) - rank(b)))
  }
}

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // A test of another package.
    exclude: ["test/system/package/project/**"],
    globalSetup: ["seed", "runFolder", "hung", "postgresServer"].map((name) => `test/support/${name}.ts`),
    setupFiles: ["test/support/errors.ts", "test/support/seeded.ts"],
    tags: [
      {
        name: "long",
        description:
          "Large tables, many runs of a property, processes that are killed and cut off: `npm run test:long`",
        timeout: 240_000
      },
      {
        name: "browser",
        description:
          "Pages in a real Chromium, each request of theirs sent: `npm run test:browser`. Some are long tests too"
      }
    ],
    sequence: { sequencer: LongestFirst },
    // Every file needs the same modules, which take longer to load than most files take to run.
    isolate: false,
    // Two that compute, and one while others wait for what they started: long tests wait more, and have four.
    maxWorkers: 3,
    // Enough on a machine that is four times as slow.
    testTimeout: 60_000,
    hookTimeout: 240_000
  }
})
