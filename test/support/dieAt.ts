/**
 * Loaded into the program before its own modules: kills it, as kill -9 does, at one exact moment of its life.
 *
 * DIE_AT is the start of a statement that the program sends to its database (empty: from the first moment), and after a
 * colon, how many writes to files later it dies.
 */
import fs from "node:fs"
import { syncBuiltinESMExports } from "node:module"
import net from "node:net"

// oxlint-disable-next-line effecttsgo/process-env -- it runs before anything that could read Config
const [statement = "", writes = ""] = (process.env["DIE_AT"] ?? "").split(":")
let remaining = statement === "" ? Number(writes) : Infinity

// oxlint-disable-next-line typescript/unbound-method -- it is applied to the socket that it is called on
const send = net.Socket.prototype.write
// The methods have several signatures, and pass on whatever they are given.
const watched: (this: net.Socket, ...args: Parameters<typeof send>) => boolean = function (...args) {
  if (remaining === Infinity && Buffer.from(args[0]).includes(statement)) remaining = Number(writes)
  return send.apply(this, args)
}
Object.assign(net.Socket.prototype, { write: watched })

const write = fs.writeSync
Object.assign(fs, {
  writeSync: (...args: Parameters<typeof write>) => {
    remaining -= 1
    if (remaining === 0) process.kill(process.pid, "SIGKILL")
    return write(...args)
  }
})
syncBuiltinESMExports()
