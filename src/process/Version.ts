/** The version of the package. */
import { readFileSync } from "node:fs"
import { Schema } from "effect"

// oxlint-disable-next-line effecttsgo/schema-sync -- there is no version to go on without
const decode = Schema.decodeSync(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))

// Read, since an import would be looked for below the folder that is compiled.
export const { version } = decode(readFileSync(new URL("../../package.json", import.meta.url), "utf8"))
