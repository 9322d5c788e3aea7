/**
 * Several processes behind one port.
 *
 * @module-tag long
 */
import { copyFileSync, readFileSync, renameSync } from "node:fs"
import { join } from "node:path"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Result } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import { inOrder, kill, stop } from "../../support/Program.ts"
import { options } from "../../support/Service.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const isRunning = (pid: number) => Result.isSuccess(Result.try(() => process.kill(pid, 0)))

const noneLeft = (pids: ReadonlyArray<number>) => eventually("no process left", () => !pids.some(isRunning))

/** A copy of Node, which a test may take away. */
const node = Effect.map(Process.temporaryFolder, (folder) => {
  const file = join(folder, "node")
  copyFileSync(Process.node, file)
  return file
})

const started = Effect.gen(function* () {
  const [database, file, cwd] = yield* Effect.all([TestDatabase, node, Process.temporaryFolder])
  // One drains for longer than one may hang.
  const settings = { DATABASE_URL: database.url, PROCESSES: "2", LOG_LEVEL: "Debug", DRAIN: "4s" }
  const command = { file, args: [join(Process.root, "src/main.ts")], cwd }
  const program = yield* Process.startCommand(command, settings)
  const url = yield* program.address
  const listened = () => program.output().split("A process listens").length - 1
  yield* eventually("two processes that listen", () => listened() === 2)
  return {
    ...program,
    url,
    node: file,
    children: () => Process.childrenOf(program.pid),
    /** Does something, and waits until another process listens than before. */
    replacing: Effect.fnUntraced(function* <E = never>(
      act: () => void,
      meanwhile: Effect.Effect<void, E> = Effect.void
    ) {
      const before = listened()
      act()
      yield* meanwhile
      yield* eventually("a process in its place", () => listened() > before)
    }),
    // On a connection of its own, which may come to any of the processes.
    isAnswered: Effect.flatMap(Client.make(url), (client) =>
      Client.patient(client).ask("/charges/search", { limit: 1 })
    ).pipe(
      Effect.map(({ status }) => assert.strictEqual(status, 200)),
      Effect.scoped
    )
  }
})

/** A program of two processes, which the tests use one after the other. */
class Program extends Context.Service<Program, Effect.Success<typeof started>>()(
  "practice-data/test/system/process/Processes/Program"
) {
  static readonly layer = Layer.effect(Program, started).pipe(Layer.provideMerge(TestDatabase.layerDemo))
}

/** The number of sockets that listen on the port of an address. */
const listenersAt = (address: string) => {
  const port = Number(new URL(address).port).toString(16).toUpperCase().padStart(4, "0")
  return readFileSync("/proc/net/tcp", "utf8").match(new RegExp(`:${port} \\w+:0000 0A `, "g"))?.length ?? 0
}

/** A program whose first process starts. */
const starting = Effect.gen(function* () {
  const parent = yield* Process.start({ DATABASE_URL: (yield* TestDatabase).url, PROCESSES: "2" })
  yield* eventually("a process that starts", () => Process.childrenOf(parent.pid).length > 0)
  return { parent, children: Process.childrenOf(parent.pid) }
})

layer(Program.layer, { ...options, timeout: "2 minutes" })("PROCESSES", (it) => {
  it.effect("each serves the port by itself, one line says which it is, and no other program may take it", () =>
    Effect.gen(function* () {
      const { isAnswered, output, url } = yield* Program
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

  it.effect("a process that dies, hangs or drains for longer than one may hang is replaced, while others answer", () =>
    Effect.gen(function* () {
      const { children, isAnswered, output, replacing } = yield* Program
      const [first = 0, second = 0] = children()
      yield* replacing(() => process.kill(first, "SIGKILL"), Effect.andThen(noneLeft([first]), isAnswered))
      yield* replacing(() => process.kill(second, "SIGSTOP"))
      assert.match(output(), new RegExp(`Killing process ${second}: no response for 3 seconds`))
      yield* noneLeft([second])
      assert.strictEqual(children().length, 2)
      for (let times = 0; times < 9; times++) yield* isAnswered
      yield* replacing(() => process.kill(children()[0] ?? 0, "SIGTERM"))
      assert.include(output(), "A process exited with code 0")
    })
  )

  it.effect("one that cannot be started is tried again, and the others answer meanwhile", () =>
    Effect.gen(function* () {
      const { children, isAnswered, node: file, output, replacing } = yield* Program
      renameSync(file, `${file}-elsewhere`)
      process.kill(children()[0] ?? 0, "SIGKILL")
      yield* eventually("a failure", () => /A process failed.*ENOENT/is.test(output()))
      for (let times = 0; times < 3; times++) yield* isAnswered
      yield* replacing(() => renameSync(`${file}-elsewhere`, file))
    })
  )

  it.effect("a process whose parent is killed while it starts ends with it, and prints nothing", () =>
    Effect.gen(function* () {
      const { children, parent } = yield* starting
      yield* kill(parent)
      yield* noneLeft(children)
      assert.strictEqual(parent.output(), "")
    })
  )

  it.effect(
    "a first process that a signal ends while it starts ends the program with 1 and a line, since it has printed none",
    () =>
      Effect.gen(function* () {
        const { children, parent } = yield* starting
        process.kill(children[0] ?? 0, "SIGKILL")
        assert.deepStrictEqual(yield* parent.ended, { code: 1, signal: null })
        assert.strictEqual(parent.output(), "A process exited with SIGKILL\n")
      })
  )

  // At the end: it ends the program of the tests above.
  it.effect("SIGTERM stops all of them, with code 0, and kill -9 leaves none behind", () =>
    Effect.gen(function* () {
      const [stopped, killed] = [yield* Program, yield* started]
      const children = [...stopped.children(), ...killed.children()]
      assert.deepStrictEqual((yield* stop(stopped)).end, inOrder)
      yield* kill(killed)
      yield* noneLeft(children)
    })
  )
})
