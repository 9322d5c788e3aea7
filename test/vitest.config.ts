import { defineConfig } from "vitest/config"

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
    // Two that compute, and one while others wait for what they started: long tests wait more, and have four.
    maxWorkers: 3,
    // Enough on a machine that is four times as slow. The few tests that need longer say so.
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
