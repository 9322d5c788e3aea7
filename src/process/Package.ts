/** The package: its version, and the way to call its command line. */
import { readFileSync } from "node:fs"
import { extname } from "node:path"
import { Schema } from "effect"

// oxlint-disable-next-line effecttsgo/schema-sync -- nothing runs without a version
const decode = Schema.decodeSync(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

// Read, since an import would be resolved below the folder of compiled files.
export const { version } = decode(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))

const extension = extname(import.meta.filename)

/** The module of this name in the folder of another one: a source, or compiled. */
export const moduleBeside = (url: string, name: string) => new URL(`${name}${extension}`, url)

/** The text of a command. From a clone, npm runs it. */
export const invocation = (command: string) =>
  extension === ".ts" ? `npm run cli -- ${command}` : `practice-data ${command}`
