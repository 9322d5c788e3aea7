/**
 * What slow reads of the processor cost the data API: the time of /consumption-logs/search, one caller at a time,
 * without them and with as many in flight as two organizations may have (20 each), in interleaved rounds. The processor
 * is a server that does not respond during a round, and does after it, so that its circuit breakers close again.
 * Usage: `npm run bench:slow-reads [-- SEARCHES ROUNDS]`.
 */
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { machine, median } from "./support.ts"

const [searches = 300, rounds = 5] = process.argv.slice(2).map(Number)

const organizations = ["oakridge", "harbor"]
const reads = 20 * organizations.length

let isSilent = false
const silent = createServer((_, response) => {
  if (!isSilent) response.end('{"object":"list","data":[],"has_more":false}')
})
await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve))
const address = silent.address()
const processor = `http://127.0.0.1:${address !== null && typeof address === "object" ? address.port : 0}`

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url))
const service = spawn(process.execPath, [main], {
  env: {
    ...process.env,
    DATA_DIR: "memory",
    PORT: "0",
    ROLES: "data-api",
    STRIPE_SECRET_KEY: "sk_bench",
    STRIPE_API_URL: processor
  },
  stdio: ["ignore", "pipe", "inherit"]
})
const port = await new Promise<string>((resolve) => {
  service.stdout.on("data", (chunk) => {
    const found = /Listening on http:\/\/[^:]*:(\d+)/.exec(String(chunk))?.[1]
    if (found !== undefined) resolve(found)
  })
})

const post = (path: string, body: object, signal?: AbortSignal, organization = "oakridge") =>
  fetch(`http://127.0.0.1:${port}/api/v3${path}`, {
    method: "POST",
    headers: { authorization: `Bearer pda_demo_${organization}`, "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal })
  })

const processorRead = (organization = "oakridge", signal?: AbortSignal) =>
  post("/psp-balance-transactions/search", { clinic: `clinic_${organization}_01` }, signal, organization)

const connections = () => new Promise<number>((resolve) => silent.getConnections((_, count) => resolve(count)))

const pause = (millis: number) => new Promise((resolve) => setTimeout(resolve, millis))

const search = async () => {
  const start = performance.now()
  const response = await post("/consumption-logs/search", { limit: 100 })
  await response.arrayBuffer()
  if (response.status !== 200) throw new Error(`a search answered ${response.status}`)
  return performance.now() - start
}

const medianOf = async (count: number) => {
  const times: Array<number> = []
  for (let index = 0; index < count; index++) times.push(await search())
  return median(times)
}

await medianOf(searches)
const alone: Array<number> = []
const beside: Array<number> = []
for (let round = 0; round < rounds; round++) {
  alone.push(await medianOf(searches))
  const hangUp = new AbortController()
  isSilent = true
  const slow = Array.from({ length: reads }, (_, index) =>
    processorRead(organizations[index % organizations.length], hangUp.signal).catch(() => undefined)
  )
  // All of them have reached the processor.
  while ((await connections()) < reads) await pause(5)
  beside.push(await medianOf(searches))
  hangUp.abort()
  await Promise.all(slow)
  isSilent = false
  for (const organization of organizations) {
    while ((await processorRead(organization)).status !== 200) await pause(200)
  }
}

console.log(`${new Date().toISOString().slice(0, 10)}, ${machine()}; medians of ${rounds} interleaved rounds`)
console.table([
  {
    "slow reads in flight": reads,
    "search alone, ms": Number(median(alone).toFixed(2)),
    "search beside them, ms": Number(median(beside).toFixed(2)),
    ratio: Number((median(beside) / median(alone)).toFixed(2))
  }
])

service.kill("SIGTERM")
silent.closeAllConnections()
silent.close()
