/**
 * Several processes behind one port.
 *
 * @module-tag long
 */
import { copyFileSync, readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Effect, Result } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import { options } from "../../support/Service.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const isRunning = (pid: number) => Result.isSuccess(Result.try(() => process.kill(pid, 0)))

const noneLeft = (pids: ReadonlyArray<number>) => eventually("no process left", () => !pids.some(isRunning))

const started = Effect.fnUntraced(function* (
  processes: number,
  environment: Process.Environment = {},
  file = Process.node
) {
  const database = yield* TestDatabase
  const settings = { DATABASE_URL: database.url, PROCESSES: String(processes), LOG_LEVEL: "Debug", ...environment }
  const command = { file, args: [join(Process.root, "src/main.ts")], cwd: yield* Process.temporaryFolder }
  const program = yield* Process.startCommand(command, settings)
  const url = yield* program.address
  const haveListened = (count: number) =>
    eventually(`${count} processes that listened`, () => program.output().split("A process listens").length > count)
  yield* haveListened(processes)
  return {
    ...program,
    url,
    haveListened,
    children: () => Process.childrenOf(program.pid),
    // On a connection of its own, which may come to any of the processes.
    isAnswered: Effect.flatMap(Client.make(url), (client) =>
      Client.patient(client).ask("/charges/search", { limit: 1 })
    ).pipe(
      Effect.map(({ status }) => assert.strictEqual(status, 200)),
      Effect.scoped
    )
  }
})

/** The number of sockets that listen on the port of an address. */
const listenersAt = (address: string) => {
  const port = Number(new URL(address).port).toString(16).toUpperCase().padStart(4, "0")
  return readFileSync("/proc/net/tcp", "utf8").match(new RegExp(`:${port} \\w+:0000 0A `, "g"))?.length ?? 0
}

layer(TestDatabase.layerDemo, options)("PROCESSES", (it) => {
  it.effect("each serves the port by itself, one line says which it is, and no other program may take it", () =>
    Effect.gen(function* () {
      const { isAnswered, output, url } = yield* started(2)
      for (let times = 0; times < 9; times++) yield* isAnswered
      assert.lengthOf(output().match(/Listening on|Open to/g) ?? [], 2, output())
      assert.strictEqual(listenersAt(url), 2)
      // The kernel would share it.
      const database = (yield* TestDatabase).url
      const second = yield* Process.startToEnd({ DATABASE_URL: database, PROCESSES: "2", PORT: new URL(url).port })
      assert.strictEqual(second.code, 1)
      assert.match(second.output, /in use.*PORT/i)
      assert.strictEqual(second.output.trim().split("\n").length, 1, second.output)
    })
  )

  it.effect("a process that dies or hangs is replaced, and the others answer meanwhile", () =>
    Effect.gen(function* () {
      const { children, haveListened, isAnswered, output } = yield* started(2)
      const [first = 0, second = 0] = children()
      process.kill(first, "SIGKILL")
      yield* noneLeft([first])
      yield* isAnswered
      yield* haveListened(3)
      process.kill(second, "SIGSTOP")
      yield* haveListened(4)
      assert.match(output(), new RegExp(`Killing process ${second}: no response for 3 seconds`))
      yield* noneLeft([second])
      assert.strictEqual(children().length, 2)
      for (let times = 0; times < 9; times++) yield* isAnswered
    })
  )

  it.effect("one that cannot be started is tried again, and the others answer meanwhile", () =>
    Effect.gen(function* () {
      const node = join(yield* Process.temporaryFolder, "node")
      copyFileSync(Process.node, node)
      const { children, haveListened, isAnswered, output } = yield* started(2, {}, node)
      renameSync(node, `${node}-elsewhere`)
      process.kill(children()[0] ?? 0, "SIGKILL")
      yield* eventually("a failure", () => /A process failed.*ENOENT/is.test(output()))
      for (let times = 0; times < 3; times++) yield* isAnswered
      renameSync(`${node}-elsewhere`, node)
      yield* haveListened(3)
    })
  )

  it.effect("a process that drains for longer than one may hang is not killed", () =>
    Effect.gen(function* () {
      const { children, haveListened, output } = yield* started(2, { DRAIN: "4s" })
      process.kill(children()[0] ?? 0, "SIGTERM")
      yield* haveListened(3)
      assert.include(output(), "A process exited with code 0")
    })
  )

  it.effect("a process whose parent is killed while it starts ends with it, and prints nothing", () =>
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const parent = yield* Process.start({ DATABASE_URL: url, PROCESSES: "2" })
      yield* eventually("a process that starts", () => Process.childrenOf(parent.pid).length > 0)
      const children = Process.childrenOf(parent.pid)
      yield* Program.kill(parent)
      yield* noneLeft(children)
      assert.strictEqual(parent.output(), "")
    })
  )

  it.effect(
    "a first process that a signal ends while it starts ends the program with 1 and a line, since it has printed none",
    () =>
      Effect.gen(function* () {
        const { url } = yield* TestDatabase
        const parent = yield* Process.start({ DATABASE_URL: url, PROCESSES: "2" })
        yield* eventually("a process that starts", () => Process.childrenOf(parent.pid).length > 0)
        process.kill(Process.childrenOf(parent.pid)[0] ?? 0, "SIGKILL")
        assert.deepStrictEqual(yield* parent.ended, { code: 1, signal: null })
        assert.strictEqual(parent.output(), "A process exited with SIGKILL\n")
      })
  )

  it.effect("SIGTERM stops all of them, with code 0, and kill -9 leaves none behind", () =>
    Effect.gen(function* () {
      const [stopped, killed] = yield* Effect.all([started(2), started(2)], { concurrency: 2 })
      const children = [...stopped.children(), ...killed.children()]
      assert.deepStrictEqual((yield* Program.stop(stopped)).end, Program.inOrder)
      yield* Program.kill(killed)
      yield* noneLeft(children)
    })
  )
})
