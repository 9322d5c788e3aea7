/**
 * What 200 slow reads of the processor cost the data API: the time of /consumption-logs/search, one caller at a time,
 * without them and with them in flight, in interleaved rounds. The processor is a server that never answers, so each
 * read is given up after 8 seconds. Usage: `npm run bench:slow-reads [-- READS SEARCHES ROUNDS]`.
 */
import { spawn } from "node:child_process"
import { createServer } from "node:http"
import { fileURLToPath } from "node:url"
import { machine, median } from "./support.ts"

const [reads = 200, searches = 300, rounds = 5] = process.argv.slice(2).map(Number)

const silent = createServer(() => undefined)
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

const post = (path: string, body: object, signal?: AbortSignal) =>
  fetch(`http://127.0.0.1:${port}/api/v3${path}`, {
    method: "POST",
    headers: { authorization: "Bearer pda_demo_oakridge", "content-type": "application/json" },
    body: JSON.stringify(body),
    ...(signal === undefined ? {} : { signal })
  })

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
  const slow = Array.from({ length: reads }, () =>
    post("/psp-balance-transactions/search", { clinic: "clinic_oakridge_01" }, hangUp.signal).catch(() => undefined)
  )
  // All of them have reached the processor.
  while ((await new Promise<number>((resolve) => silent.getConnections((_, count) => resolve(count)))) < reads) {
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  beside.push(await medianOf(searches))
  hangUp.abort()
  await Promise.all(slow)
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
