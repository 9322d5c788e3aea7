/** The package and its process: the version, the way to call the command line, and the memory. */
import { readFileSync } from "node:fs"
import { totalmem } from "node:os"
import { extname } from "node:path"
import { getHeapStatistics } from "node:v8"
import { Schema } from "effect"

// oxlint-disable-next-line effecttsgo/schema-sync -- nothing runs without a version
const decode = Schema.decodeSync(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

// Read as a file: an import would be resolved below the folder of compiled files.
export const { version } = decode(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))

const extension = extname(import.meta.filename)

/** The module of this name in the folder of another one: a source, or compiled. */
export const moduleBeside = (url: string, name: string) => new URL(`${name}${extension}`, url)

/** The text of a command. From a clone, npm runs it. */
export const invocation = (command: string) =>
  extension === ".ts" ? `npm run cli -- ${command}` : `practice-data ${command}`

/** The part of the memory that `npm start` gives to the heap. */
const heap = 0.4

/** The bytes of the machine, or of the container (cgroup 1 or 2), or what the limit of the heap is meant for, if less. */
export const ownMemory = () =>
  Math.min(process.constrainedMemory() || Infinity, totalmem(), getHeapStatistics().heap_size_limit / heap)
