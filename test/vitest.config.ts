import { readFileSync } from "node:fs"
import { defineConfig } from "vitest/config"
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** Folders whose files take longest: any of them would otherwise be the last to end. */
const longest = ["/system/", "/integration/changes/", "/integration/deletions/", "/integration/", "/unit/"]

const rank = ({ moduleId }: TestSpecification) => longest.findIndex((folder) => moduleId.includes(folder))

/** True if `npm test` leaves out all tests of a file, so that it need not be loaded. */
const isLeftOut = (tagsFilter: string, { moduleId }: TestSpecification) =>
  tagsFilter.startsWith("!long") && /@module-tag (long|browser)\b/.test(readFileSync(moduleId, "utf8"))

/** How long a file took before says nothing: `npm test` and `npm run test:long` each leave out tests of it. */
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
    globalSetup: ["shared", "postgresServer"].map((name) => `test/support/${name}.ts`),
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
    // Two that compute, and one while others wait for what they started.
    maxWorkers: 3,
    // Enough on a machine that is four times as slow.
    testTimeout: 60_000,
    hookTimeout: 240_000
  }
})
