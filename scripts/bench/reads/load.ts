/** Asks a server for a while over several connections at once. */
import autocannon from "autocannon"
import type { Request } from "./contenders.ts"
import { cpuOf, type Server } from "./processes.ts"

/** What one round came to. */
export interface Round {
  readonly perSecond: number
  /** CPU time of the server for a request, in milliseconds. */
  readonly server: number
  /** CPU time of the database for a request, in milliseconds. */
  readonly database: number
}

interface Limit {
  readonly connections: number
  /** How long, in seconds. */
  readonly seconds?: number
  /** How many requests, where it is not so long. */
  readonly requests?: number
  /** The status of every answer. */
  readonly status: number
}

/** Asks the same again and again. An answer with another status than expected fails the bench. */
export const load = async (
  server: Server,
  postmaster: number,
  { method, path, headers, body }: Request,
  { connections, requests, seconds, status }: Limit
): Promise<Round> => {
  const before = { server: cpuOf(server.pid), database: cpuOf(postmaster), time: performance.now() }
  const run = await autocannon({
    url: server.url + path,
    method,
    headers: { ...headers },
    ...(body === undefined ? {} : { body }),
    connections,
    ...(requests === undefined ? { duration: seconds ?? 1 } : { amount: requests }),
    sampleInt: 100
  })
  const took = (performance.now() - before.time) / 1000
  const count = run.requests.total
  const wrong = run.errors + run.timeouts + (status === 200 ? run.non2xx : run["2xx"])
  if (wrong > 0 || count === 0) throw new Error(`${wrong} of ${count} answers of ${server.url + path} were wrong`)
  return {
    perSecond: count / took,
    server: (cpuOf(server.pid) - before.server) / count,
    database: (cpuOf(postmaster) - before.database) / count
  }
}
