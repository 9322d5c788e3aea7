/**
 * Several processes behind one port, and a replica that the data API reads from.
 *
 * @module-tag long
 */
import { readFileSync } from "node:fs"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"

const ownDatabase = Layer.fresh(TestDatabase.layerDemo)

const childrenOf = (pid: number) =>
  Effect.sync(() =>
    readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").trim().split(" ").filter(Boolean).map(Number)
  )

const isRunning = (pid: number) =>
  Effect.sync(() => {
    try {
      return process.kill(pid, 0)
    } catch {
      return false
    }
  })

const started = Effect.fnUntraced(function* (processes: number, environment: Process.Environment = {}) {
  const { url } = yield* TestDatabase
  const program = yield* Process.start({
    DATABASE_URL: url,
    PROCESSES: String(processes),
    LOG_LEVEL: "Debug",
    ...environment
  })
  const address = yield* program.address
  const haveListened = (count: number) =>
    eventually(
      `${count} processes that listened`,
      Effect.sync(() => program.output().split("A process listens").length > count)
    )
  yield* haveListened(processes)
  return {
    ...program,
    url: address,
    haveListened,
    answers: Effect.flatMap(Client.make(address), isAnswered).pipe(Effect.scoped)
  }
})

const isAnswered = (client: Client.Client) =>
  Effect.map(client.ask("/charges/search", { limit: 1 }), ({ status }) => assert.strictEqual(status, 200))

/** How many sockets listen on the port of an address. */
const listenersAt = (address: string) =>
  Effect.sync(() => {
    const port = Number(new URL(address).port).toString(16).toUpperCase().padStart(4, "0")
    return readFileSync("/proc/net/tcp", "utf8").match(new RegExp(`:${port} \\w+:0000 0A `, "g"))?.length ?? 0
  })

const none = (pids: ReadonlyArray<number>) =>
  eventually(
    "no process left",
    Effect.map(Effect.forEach(pids, isRunning), (running) => !running.includes(true))
  )

describe("PROCESSES", () => {
  it.live("so many processes serve the port; one line says which it is, and one what is open", () =>
    Effect.gen(function* () {
      const { answers, output } = yield* started(3)
      for (let times = 0; times < 9; times++) yield* answers
      assert.lengthOf(output().match(/Listening on|Open to/g) ?? [], 2, output())
    }).pipe(Effect.provide(ownDatabase))
  )

  it.live("each listens by itself, so that no connection is on its way to one through another", () =>
    Effect.gen(function* () {
      const { url } = yield* started(3)
      assert.strictEqual(yield* listenersAt(url), 3)
    }).pipe(Effect.provide(ownDatabase))
  )

  it.live("a port that someone else listens on is refused, though the kernel would share it", () =>
    Effect.gen(function* () {
      const { url: database } = yield* TestDatabase
      const { url } = yield* started(2)
      const second = yield* Process.startToEnd({ DATABASE_URL: database, PROCESSES: "2", PORT: new URL(url).port })
      assert.isAbove(second.code ?? 0, 0)
      assert.match(second.output, /in use.*PORT/i)
      assert.strictEqual(second.output.trim().split("\n").length, 1, second.output)
    }).pipe(Effect.provide(ownDatabase))
  )

  it.live("a process that dies is replaced, and the others answer meanwhile", () =>
    Effect.gen(function* () {
      const { answers, haveListened, pid } = yield* started(2)
      const [first = 0] = yield* childrenOf(pid)
      process.kill(first, "SIGKILL")
      yield* none([first])
      yield* answers
      yield* haveListened(3)
      assert.strictEqual((yield* childrenOf(pid)).length, 2)
      yield* answers
    }).pipe(Effect.provide(ownDatabase))
  )

  it.live("a process that hangs is killed and replaced, and requests are answered again", () =>
    Effect.gen(function* () {
      const { answers, haveListened, output, pid } = yield* started(2)
      const [first = 0] = yield* childrenOf(pid)
      process.kill(first, "SIGSTOP")
      yield* haveListened(3)
      assert.match(output(), new RegExp(`Process ${first} did not answer for 3 seconds`))
      yield* none([first])
      assert.strictEqual((yield* childrenOf(pid)).length, 2)
      for (let times = 0; times < 20; times++) yield* answers
    }).pipe(Effect.provide(ownDatabase))
  )

  it.live("a process that drains for longer than one may hang is not killed", () =>
    Effect.gen(function* () {
      const { haveListened, output, pid } = yield* started(2, { DRAIN: "5 seconds" })
      const [first = 0] = yield* childrenOf(pid)
      process.kill(first, "SIGTERM")
      yield* haveListened(3)
      assert.include(output(), "A process ended with code 0")
    }).pipe(Effect.provide(ownDatabase))
  )

  it.live("no process is killed that stands still for a moment, nor because its parent did for long", () =>
    Effect.gen(function* () {
      const { answers, kill, output, pid } = yield* started(2)
      const children = yield* childrenOf(pid)
      const [first = 0] = children
      process.kill(first, "SIGSTOP")
      yield* Effect.sleep("1 second")
      process.kill(first, "SIGCONT")
      yield* kill("SIGSTOP")
      yield* Effect.sleep("5 seconds")
      yield* kill("SIGCONT")
      yield* Effect.sleep("4 seconds")
      yield* answers
      assert.deepStrictEqual(yield* childrenOf(pid), children, output())
    }).pipe(Effect.provide(ownDatabase))
  )

  it.live.each(["SIGTERM", "SIGINT"] as const)("%s stops all of them, with code 0", (signal) =>
    Effect.gen(function* () {
      const { ended, kill, pid } = yield* started(2)
      const children = yield* childrenOf(pid)
      yield* kill(signal)
      assert.deepStrictEqual(yield* ended, { code: 0, signal: null })
      yield* none(children)
    }).pipe(Effect.provide(ownDatabase))
  )

  it.live("none is left behind by a kill -9", () =>
    Effect.gen(function* () {
      const { ended, kill, pid } = yield* started(2)
      const children = yield* childrenOf(pid)
      yield* kill("SIGKILL")
      yield* ended
      yield* none(children)
    }).pipe(Effect.provide(ownDatabase))
  )
})

describe("READ_DATABASE_URL", () => {
  it.live("is where the data API reads records; keys and deletions are those of DATABASE_URL", () =>
    Effect.gen(function* () {
      const { url, sql } = yield* TestDatabase
      const replica = yield* Layer.build(ownDatabase)
      const read = yield* Effect.provide(TestDatabase, replica)
      yield* read.sql`update charges set status = 'as replicated'`
      yield* read.sql`update api_keys set revoked_at = now()`
      const program = yield* Process.start({
        DATABASE_URL: url,
        READ_DATABASE_URL: read.url,
        DELETION_DELAY: "0 seconds"
      })
      const client = yield* Client.make(yield* program.address)
      const { status, text } = yield* client.ask("/charges/search", { limit: 1 })
      assert.strictEqual(status, 200, text)
      assert.include(text, '"status":"as replicated"')
      yield* sql`update api_keys set revoked_at = now()`
      assert.strictEqual((yield* client.ask("/charges/search", { limit: 1 })).status, 401)
    }).pipe(Effect.provide(ownDatabase))
  )
})
