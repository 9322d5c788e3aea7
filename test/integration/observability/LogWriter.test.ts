/** Log lines to a pipe: in order, whole, and without waiting for who reads it. */
import { execFileSync } from "node:child_process"
import { closeSync, constants, openSync, readSync } from "node:fs"
import { join } from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { makeWriter } from "../../../src/observability/Logging.ts"
import { eventually } from "../../support/eventually.ts"
import { temporaryFolder } from "../../support/Process.ts"

const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants

const opened = (path: string, flags: number) =>
  Effect.acquireRelease(
    Effect.sync(() => openSync(path, flags | O_NONBLOCK)),
    (fd) => Effect.sync(() => closeSync(fd))
  )

/** All that is in a pipe. */
const readAll = (fd: number) => {
  const chunk = Buffer.alloc(1024 * 1024)
  let text = ""
  try {
    for (let size = readSync(fd, chunk); size > 0; size = readSync(fd, chunk)) text += chunk.toString("utf8", 0, size)
  } catch {
    // It is empty.
  }
  return text
}

const pipe = Effect.gen(function* () {
  const path = join(yield* temporaryFolder, "pipe")
  execFileSync("mkfifo", [path])
  return path
})

/** A writer that ends before its descriptor is closed, and may be another's. */
const writerTo = (fd: number, capacity?: number) =>
  Effect.acquireRelease(
    Effect.sync(() => makeWriter(fd, capacity)),
    ({ end }) => Effect.sync(end)
  )

const piped = Effect.fnUntraced(function* (capacity?: number) {
  const path = yield* pipe
  const reader = yield* opened(path, O_RDONLY)
  const writer = yield* writerTo(yield* opened(path, O_WRONLY), capacity)
  return { read: () => readAll(reader), writer }
})

const line = (number: number, length = 100) => `${number} `.padEnd(length - 1, "x") + "\n"
const numbersOf = (text: string) => Array.from(text.split("\n").slice(0, -1), (each) => Number(each.split(" ")[0]))
const range = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index)

/** All that is read until it has a text. */
const readUntil = (read: () => string, wanted: string) =>
  Effect.suspend(() => {
    let text = ""
    const hasCome = () => (text += read()).includes(wanted)
    return Effect.map(eventually(wanted, hasCome), () => text)
  })

it.live("lines are written together after a while, and an urgent one at once with all before it", () =>
  Effect.gen(function* () {
    const { read, writer } = yield* piped()
    writer.write(line(0))
    writer.write(line(1))
    assert.strictEqual(read(), "")
    writer.write(line(2), true)
    assert.deepStrictEqual(numbersOf(read()), [0, 1, 2])
    writer.write(line(3))
    assert.strictEqual(read(), "")
    assert.deepStrictEqual(numbersOf(yield* readUntil(read, "\n")), [3])
  })
)

it.live("while a reader hangs, lines are kept up to a bound, then dropped and counted", () =>
  Effect.gen(function* () {
    const { read, writer } = yield* piped(200_000)
    for (const number of range(0, 10_000)) writer.write(line(number), number % 2 === 0)
    const dropped = writer.dropped()
    // What the pipe holds, and what is kept.
    assert.isTrue(dropped > 10_000 - 2800 && dropped < 10_000 - 2000, `${dropped} were dropped`)
    const first = yield* readUntil(read, `\n${9999 - dropped} `)
    writer.write(line(10_000), true)
    assert.deepStrictEqual(numbersOf(first + read()), [...range(0, 10_000 - dropped), 10_000])
  })
)

it.live("lines wait for the next reader, and a line that was cut off ends first", () =>
  Effect.gen(function* () {
    const path = yield* pipe
    const first = openSync(path, O_RDONLY | O_NONBLOCK)
    const writer = yield* writerTo(yield* opened(path, O_WRONLY))
    // Longer than what the pipe holds.
    writer.write(line(0, 200_000), true)
    closeSync(first)
    for (const number of range(1, 10)) writer.write(line(number), true)
    const reader = yield* opened(path, O_RDONLY)
    const text = yield* readUntil(() => readAll(reader), "\n9 ")
    assert.deepStrictEqual(numbersOf(text).slice(1), range(1, 10))
    assert.strictEqual(writer.dropped(), 0)
  })
)
