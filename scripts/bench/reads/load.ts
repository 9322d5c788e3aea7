/** Asks a server for a while over 16 connections at once. */
import { setTimeout } from "node:timers/promises"
import autocannon from "autocannon"
import { samplesOf } from "../../../test/support/metrics.ts"
import { requestOf, statusOf } from "./contenders.ts"
import { cpuOf, type Server } from "./processes.ts"
import type { Work } from "./work.ts"

/** What one round came to. */
export interface Round {
  readonly perSecond: number
  /** CPU time of the server for a request, in milliseconds. */
  readonly server: number
  /** CPU time of the database for a request, in milliseconds. */
  readonly database: number
}

/** Milliseconds in which the server before, and its database, end what its clients have left: 16 pages of 1000, say. */
const settling = 200

/** Asks the same for some seconds, again if none was answered. An answer with another status than expected fails the bench. */
export const load = async (server: Server, postmaster: number, work: Work, seconds: number): Promise<Round> => {
  const { path, ...request } = requestOf(work)
  await setTimeout(settling)
  const before = { server: cpuOf(server.pid), database: cpuOf(postmaster), time: performance.now() }
  const run = await autocannon({
    url: server.url + path,
    ...request,
    connections: 16,
    duration: seconds,
    sampleInt: 100
  })
  const took = (performance.now() - before.time) / 1000
  const count = run.requests.total
  const wrong = run.errors + run.timeouts + (statusOf(work) === 200 ? run.non2xx : run["2xx"])
  if (wrong > 0) throw new Error(`${wrong} of ${count} answers of ${server.url + path} were wrong`)
  if (count === 0) return load(server, postmaster, work, seconds)
  return {
    perSecond: count / took,
    server: (cpuOf(server.pid) - before.server) / count,
    database: (cpuOf(postmaster) - before.database) / count
  }
}

/** The number of requests that a service has answered, and of those that its lane answered. */
export const answered = async (service: Server | undefined) => {
  const samples = Object.entries(samplesOf(await (await fetch(service?.metrics ?? "")).text()))
  const sum = (name: string) =>
    samples.reduce((all, [key, value]) => (key.startsWith(name) && !key.includes('"499"') ? all + value : all), 0)
  return { all: sum("practice_data_http_requests_total{"), lane: sum("practice_data_http_requests_lane_total") }
}
