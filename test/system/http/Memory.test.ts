/**
 * The documented 512 MiB: bodies and readers of many clients at once, in a cgroup of that size. Skipped where none can be made.
 *
 * @module-tag long
 */
import { existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Result, Schedule } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import { node, root, startCommand } from "../../support/Process.ts"
import * as Raw from "../../support/Raw.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const mebibyte = 1024 * 1024

/** The folder of version 1 or 2, and the name of its limit. */
const version = existsSync("/sys/fs/cgroup/cgroup.controllers")
  ? { folder: "/sys/fs/cgroup", limit: "memory.max", failures: "memory.events" }
  : { folder: "/sys/fs/cgroup/memory", limit: "memory.limit_in_bytes", failures: "memory.oom_control" }

/** A cgroup of 512 MiB, removed with the scope; undefined where this user may make none. */
const cgroup = Effect.acquireRelease(
  Effect.sync(() => {
    const folder = join(version.folder, `practice-data-test-${process.pid}`)
    const made = Result.try(() => {
      mkdirSync(folder)
      writeFileSync(join(folder, version.limit), String(512 * mebibyte))
    })
    return Result.isSuccess(made) ? folder : undefined
  }),
  (folder) => Effect.ignore(Effect.try(() => (folder === undefined ? undefined : rmdirSync(folder))))
)

const options = "-r ./src/preload.cjs --max-semi-space-size=8 --no-parallel-scavenge --max-old-space-size-percentage=40"

const most = 256 * 1024

const nested = `{"invoices":[${"[],".repeat(most / 3 - 10)}[]]}`
const names = `{${Array.from({ length: most / 12 }, (_, index) => `"${index}":1`).join(",")}}`
const items = Array.from({ length: 3000 }, (_, index) => `{"invoice_id":"i${index}","note":"${"x".repeat(50)}"}`)
const delivered = `{"invoices":[${items.join(",")}]}`

const delivery = (body: string, index: number, length = body.length) =>
  `POST /api/v1/invoice-deletions HTTP/1.1\r\nHost: a\r\nConnection: close\r\nIdempotency-Key: k${index}\r\nX-Organization-Id: o${index}\r\nContent-Type: application/json\r\nContent-Length: ${length}\r\n\r\n${body}`

const search = (body: string, length = body.length, path = "/charges/search") =>
  Raw.post(path, body, `Connection: close\r\nContent-Length: ${length}\r\n`)

/** Sends a text again while the service is busy, as a client does. */
const exchange = (address: string, text: string) =>
  Effect.repeat(Raw.exchange(address, text), {
    while: (got) => Raw.statusesOf(got).includes(503),
    schedule: Schedule.spaced("200 millis"),
    times: 50
  })

const times = (count: number, text: (index: number) => string) =>
  Array.from({ length: count }, (_, index) => text(index))

const bodies = [
  ["announced bodies that are too large", times(200, () => search(" ".repeat(60_000), 2 * most)), [413]],
  ["large deliveries", times(16, (index) => delivery(delivered, index)), [200, 202]],
  ["nested lists", times(16, (index) => delivery(nested, index)), [422]],
  ["names", times(16, (index) => delivery(names, index)), [422]],
  ["large searches", times(16, () => search(`{"status":"${"s".repeat(most - 20)}"}`)), [200]],
  ["large pages", times(16, () => search('{"limit":1000}', 14, "/consumption-logs/search")), [200]]
] as const

layer(TestDatabase.layerDemo, { excludeTestServices: true })("In 512 MiB, the service", (it) => {
  it.effect("answers large, nested and unfinished bodies, and goes on", (context) =>
    Effect.gen(function* () {
      const folder = yield* cgroup
      if (folder === undefined) return context.skip("this user can make no cgroup")
      const { url } = yield* TestDatabase
      const enter = 'echo $$ > "$0/cgroup.procs" && exec "$@"'
      const args = ["-c", enter, folder, node, ...options.split(" "), "src/main.ts"]
      const service = yield* startCommand({ file: "/bin/sh", args, cwd: root }, { DATABASE_URL: url })
      const address = yield* service.address
      const { ask } = Client.patient(yield* Client.make(address))
      for (let round = 0; round < 2; round++) {
        for (const [name, texts, statuses] of bodies) {
          const got = yield* Effect.forEach(texts, (text) => exchange(address, text), { concurrency: "unbounded" })
          const [seen = 0, ...others] = new Set(got.flatMap(Raw.statusesOf))
          assert.includeMembers([...statuses], [seen, ...others], name)
          assert.lengthOf(got.flatMap(Raw.statusesOf), texts.length, name)
          assert.strictEqual((yield* ask("/charges/search")).status, 200, name)
        }
        yield* Effect.scoped(
          Effect.gen(function* () {
            const held = yield* Effect.forEach(times(990, String), () => Raw.open(address), { concurrency: 50 })
            const part = delivery(" ".repeat(most - 1), round, most)
            for (const { send } of held) yield* send(part)
            yield* eventually("all that was sent", () => held.every(({ socket }) => socket.writableLength === 0))
            assert.strictEqual((yield* ask("/charges/search")).status, 200, "unfinished bodies")
          })
        )
      }
      assert.notMatch(readFileSync(join(folder, version.failures), "utf8"), /oom_kill [1-9]/)
    }).pipe(Effect.scoped)
  )
})
