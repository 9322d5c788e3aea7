import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: ["test/support/seed.ts", "test/support/postgresServer.ts"],
    setupFiles: ["test/support/seeded.ts"],
    tags: [
      { name: "long", description: "Large tables, many runs of a property, many ways to fail: `npm run test:long`" }
    ],
    // Every file needs the same modules, which take longer to load than most files take to run.
    isolate: false,
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 60_000
  }
})
