/** What `npm run bench:scale` measured last. */
import { readFileSync } from "node:fs"
import { Schema } from "effect"

const Measured = Schema.Struct({
  date: Schema.String,
  machine: Schema.String,
  commit: Schema.String,
  figures: Schema.Struct({
    logTableBytes: Schema.Finite,
    logIndexBytes: Schema.Finite,
    logIndexes: Schema.Finite,
    recordTableBytes: Schema.Finite,
    recordIndexBytes: Schema.Finite,
    indexes: Schema.Finite,
    copyOutPerCpuSecond: Schema.Finite,
    copyInPerCpuSecond: Schema.Finite,
    indexBuildPerCpuSecond: Schema.Finite,
    vacuumPerCpuSecond: Schema.Finite,
    removalBytes: Schema.Finite,
    taskBytes: Schema.Finite,
    keyBytes: Schema.Finite,
    lookUpMicros1000: Schema.Finite,
    lookUpMicros1000000: Schema.Finite,
    sessionKilobytes: Schema.Finite,
    mapsCpuSeconds: Schema.Finite,
    mapsMegabytes: Schema.Finite,
    keyMapBytes: Schema.Finite,
    organizationMapBytes: Schema.Finite,
    haproxyMegabytesEmpty: Schema.Finite,
    haproxyMegabytes: Schema.Finite,
    haproxyStartCpuSeconds: Schema.Finite,
    haproxyUpdateCpuSeconds: Schema.Finite,
    haproxyMegabytesAfterUpdate: Schema.Finite
  })
})

// oxlint-disable-next-line effecttsgo/schema-sync -- there is no page without it
const decode = Schema.decodeSync(Schema.fromJsonString(Measured))

export const measured = decode(readFileSync(new URL("../measured.json", import.meta.url), "utf8"))
