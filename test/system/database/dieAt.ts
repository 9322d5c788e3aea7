/**
 * Loaded into the program before its own modules: kills it, as kill -9 does, at one exact moment of its life.
 *
 * DIE_AT is the start of a statement that the program sends to its database (empty: from the first moment), and after a
 * colon, how many writes to files later it dies.
 */
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import { parentPort } from "node:worker_threads"

// oxlint-disable-next-line effecttsgo/process-env -- it runs before anything that could read Config
const [statement = "", writes = ""] = (process.env["DIE_AT"] ?? "").split(":")
let remaining = statement === "" ? Number(writes) : Infinity

// In the thread of the embedded database, which gets its statements by messages.
parentPort?.on("message", (message: unknown) => {
  if (remaining < Infinity || !(message instanceof Uint8Array)) return
  if (Buffer.from(message).includes(statement)) remaining = Number(writes)
})

const write = fs.writeSync
Object.assign(fs, {
  writeSync: (...args: Parameters<typeof write>) => {
    remaining -= 1
    if (remaining === 0) process.kill(process.pid, "SIGKILL")
    return write(...args)
  }
})
syncBuiltinESMExports()
