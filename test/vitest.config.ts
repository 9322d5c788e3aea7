import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    // A test of another package.
    exclude: ["test/system/package/project/**"],
    globalSetup: ["test/support/seed.ts", "test/support/runFolder.ts", "test/support/postgresServer.ts"],
    setupFiles: ["test/support/seeded.ts"],
    tags: [
      {
        name: "long",
        description: "Large tables, many runs of a property, processes that are killed and cut off: `npm run test:long`"
      },
      {
        name: "browser",
        description:
          "Pages in a real Chromium, each request of theirs sent: `npm run test:browser`. Some are long tests too"
      }
    ],
    // Every file needs the same modules, which take longer to load than most files take to run.
    isolate: false,
    // Two that compute, and one while others wait for what they started.
    maxWorkers: 3,
    // They end a test that hangs. A machine that is busy is no fault of the tests.
    testTimeout: 300_000,
    hookTimeout: 300_000
  }
})
