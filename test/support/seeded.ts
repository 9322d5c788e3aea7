/**
 * Each test draws its random values from a sequence that the seed and its name decide, so that it draws the same ones
 * alone and among others; tests that run at the same time share one. A test that fails says how to run it again.
 */
import { hash } from "node:crypto"
import { beforeEach, inject } from "vitest"

/** Numbers from 0 inclusive to 1 exclusive: mulberry32. */
const sequence = (start: string) => {
  let state = Number.parseInt(hash("sha256", start).slice(0, 8), 16)
  return () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296
  }
}

/** A pattern that matches a name, quoted for a shell. */
const pattern = (name: string) =>
  `'${name.replaceAll(/[$()*+.?[\\\]^{|}]/g, String.raw`\$&`).replaceAll("'", "'\\''")}'`

beforeEach(({ task, onTestFailed }) => {
  const seed = inject("seed")
  // Effect's Random and the seeds of its properties come from here, unless a test gives its own.
  Math.random = sequence(`${seed} ${task.file.name} ${task.fullTestName}`)
  onTestFailed(() => {
    const script = task.tags?.includes("long") ? "run test:long" : "test"
    process.stderr.write(`To run it again: SEED=${seed} npm ${script} -- ${task.file.name} -t ${pattern(task.name)}\n`)
  })
})
