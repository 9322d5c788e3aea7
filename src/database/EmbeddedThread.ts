/** The thread of an embedded database: opens its cluster, and answers messages of the wire protocol until one is null. */
import { parentPort, workerData } from "node:worker_threads"
import { PGlite } from "@electric-sql/pglite"

const database = await PGlite.create({ dataDir: String(workerData) })

// A message that fails ends the thread.
parentPort?.on("message", (message: Uint8Array | null) => {
  if (message === null) {
    parentPort?.removeAllListeners().close()
    return void database.close()
  }
  const answer: Array<Uint8Array<ArrayBuffer>> = []
  const answered = database.execProtocolRawStream(message, { onRawData: (data) => answer.push(data.slice()) })
  const moved = () => answer.map(({ buffer }) => buffer)
  return void answered.then(() => parentPort?.postMessage(answer, moved()))
})
parentPort?.postMessage("open", [])
