/**
 * The Dockerfile, built by podman, and its container on a Postgres. Skipped where it or the base image
 * is missing: scripts/container/README.md says how to get both.
 *
 * @module-tag long
 */
import { existsSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Config, Effect } from "effect"
import * as Client from "../../support/Client.ts"
import { freePort } from "../../support/LocalPostgres.ts"
import { root, startCommand } from "../../support/Process.ts"
import { succeed } from "../../support/run.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** A command of an engine. crun of Debian 12 refuses a host that has both versions of cgroups: there, it sees the first alone. */
const engine = (...command: ReadonlyArray<string>) =>
  existsSync("/sys/fs/cgroup/unified")
    ? { file: "unshare", args: ["-m", "sh", "-c", 'umount /sys/fs/cgroup/unified; exec "$@"', "sh", ...command] }
    : { file: command[0] ?? "", args: command.slice(1) }

const environment = Effect.map(Config.String("PATH"), (PATH) => ({ PATH }))

const runIn = Effect.fnUntraced(function* (...command: ReadonlyArray<string>) {
  const { args, file } = engine(...command)
  return yield* succeed(file, args, { cwd: root, env: yield* environment })
})

const options = ["--format=docker", "--layers", "--network=host", "--file=scripts/container/Dockerfile"]

/** How compose and Kubernetes run it: little memory, nothing writable but /tmp, no capabilities. */
const confined = ["--memory=512m", "--read-only", "--cap-drop=all", "--security-opt=no-new-privileges"]

const limits = ["--ulimit=nofile=4096:4096", "--ulimit=nproc=4096:4096"]

layer(TestDatabase.layerDemo, { excludeTestServices: true })("The image", (it) => {
  it.effect("serves a page as a user without rights, is healthy, and stops in its time", (context) =>
    Effect.gen(function* () {
      yield* Effect.catch(runIn("podman", "image", "exists", "docker.io/library/node:26.10.0-trixie-slim"), () =>
        Effect.sync(() => context.skip("there is no podman, or no base image"))
      )
      const name = `practice-data-test-${process.pid}`
      yield* runIn("podman", "build", ...options, `--tag=${name}`, ".")
      yield* Effect.addFinalizer(() => Effect.ignore(runIn("podman", "rmi", "--force", name)))
      const { url } = yield* TestDatabase
      const port = yield* freePort
      const variables = [`--env=DATABASE_URL=${url}`, `--env=PORT=${port}`, "--env=LOG_FORMAT=json"]
      const run = ["podman", "run", "--rm", `--name=${name}`, "--network=host", ...confined, ...limits, ...variables]
      const service = yield* startCommand({ ...engine(...run, name), cwd: root }, yield* environment)
      const { ask } = yield* Client.make(yield* service.address)
      assert.strictEqual((yield* ask("/charges/search")).status, 200)
      assert.strictEqual((yield* runIn("podman", "exec", name, "id", "--user")).stdout, "1000\n")
      yield* runIn("podman", "healthcheck", "run", name)
      yield* service.kill("SIGTERM")
      const end = yield* Effect.timeout(service.ended, "15 seconds")
      assert.deepStrictEqual(end, { code: 0, signal: null }, service.output())
    }).pipe(Effect.scoped)
  )
})
