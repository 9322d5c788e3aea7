/** `/health` of the operators' listener: each part of each process, with its state, since when, and its last problem. */
import { Effect, Record } from "effect"
import { HttpRouter, HttpServerResponse } from "effect/http"
import { version } from "../process/Package.ts"
import { iso } from "./Format.ts"
import type { ProcessSnapshot } from "./Figures.ts"
import { type Dependency, type Seen, Watch } from "./Watch.ts"

const checkOf = ({ last, problem, since }: Dependency) => ({
  status: problem === null ? "pass" : "warn",
  since: iso(since),
  ...(problem === null ? {} : { output: problem }),
  ...(last === null ? {} : { last_problem: { output: last.problem, at: iso(last.at) } })
})

const processOf = (
  { dependencies }: Seen,
  { pid, process, ready, roles, startedAt, version: own }: ProcessSnapshot
) => ({
  process,
  pid,
  version: own,
  roles,
  started: iso(startedAt),
  ready,
  checks: Record.fromIterableWith(
    dependencies.filter((one) => one.process === process),
    (one) => [one.name, checkOf(one)]
  )
})

/** What is told of all that was seen. */
export const told = (seen: Seen) => {
  const isFine =
    seen.silent.length === 0 &&
    seen.processes.every(({ ready }) => ready) &&
    seen.dependencies.every(({ problem }) => problem === null)
  return {
    status: isFine ? "pass" : "warn",
    version,
    processes: seen.processes.map((one) => processOf(seen, one)),
    silent: seen.silent.map(({ pid, process, silent }) => ({ process, pid, output: silent }))
  }
}

/** The route. */
export const layer = HttpRouter.use((router) =>
  Effect.flatMap(Watch, ({ look }) =>
    router.add(
      "GET",
      "/health",
      Effect.map(look, (seen) => HttpServerResponse.jsonUnsafe(told(seen)))
    )
  )
)
