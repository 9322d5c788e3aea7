/** The thread in which `Embedded` makes a cluster. */
import { workerData } from "node:worker_threads"
import { PGlite } from "@electric-sql/pglite"

const database = await PGlite.create({ dataDir: String(workerData) })
await database.close()
