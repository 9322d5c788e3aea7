/** The memory that several processes share. */
import { assert, it } from "@effect/vitest"
import * as Memory from "../../../src/process/Memory.ts"

const mebibyte = 1024 ** 2

it("Processes that do not fit are refused with what is there, what one needs and what to set", () => {
  assert.strictEqual(
    Memory.shortage(2, 256 * mebibyte),
    "2 processes need 512 MiB, 256 MiB each, and this machine or container has 256 MiB. Set PROCESSES=1, or give it more memory"
  )
  assert.include(Memory.shortage(8, 1024 * mebibyte), "Set PROCESSES=4")
  assert.include(Memory.shortage(2, 64 * mebibyte), "Set PROCESSES=1")
  assert.isUndefined(Memory.shortage(2, 512 * mebibyte))
})

it("Processes together have the heap of one, and each of them as much as one at most", () => {
  const memory = 1000
  // As `npm start` sets it, and a user.
  assert.strictEqual(Memory.heapOfEach(2, 400, memory), 200)
  assert.strictEqual(Memory.heapOfEach(2, 800, memory), 400)
  // As Node sets it on a large machine: it divides what one would not take.
  assert.strictEqual(Memory.heapOfEach(2, 100, memory), 100)
  assert.strictEqual(Memory.heapOfEach(8, 100, memory), 50)
})
