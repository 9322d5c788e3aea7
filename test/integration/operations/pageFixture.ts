/** Made-up data of the operators' pages, and their listener over it in this process, without a socket. */
import { Context, Effect, Layer, Option, Record, type Scope, Struct } from "effect"
import { HttpEffect, HttpRouter, HttpServerRequest } from "effect/http"
import { noItems, type State } from "../../../src/api/DeletionTasks.ts"
import type { Health } from "../../../src/api/HealthApi.ts"
import { type Database, layerShared, type TaskDatabase } from "../../../src/database/Database.ts"
import { Failure } from "../../../src/database/SqlFailure.ts"
import { makeTaskId } from "../../../src/deletions/Delivery.ts"
import type { Task } from "../../../src/deletions/OperatorTasks.ts"
import * as Recent from "../../../src/operations/Recent.ts"
import { iso } from "../../../src/operations/Format.ts"
import { HealthChecks } from "../../../src/operations/HealthChecks.ts"
import { routes } from "../../../src/operations/OperationsListener.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

const minute = 60_000

const due = (state: State) => state === "scheduled" || state === "running"

/** A task of a state, by its Idempotency-Key. */
export const taskOf = (organization: string, key: string, state: State, now: number): Task => ({
  organization_id: organization,
  id: makeTaskId(organization, key),
  idempotency_key: key,
  state,
  received_at: iso(now - 10 * minute),
  scheduled_for: iso(now - 9 * minute),
  due_at: state === "scheduled" ? iso(now + 2 * minute) : state === "running" ? iso(now + 900) : null,
  started_at: state === "scheduled" ? null : iso(now - 9 * minute),
  finished_at: due(state) ? null : iso(now - 8 * minute),
  attempts: state === "scheduled" ? 0 : state === "dead" ? 8 : 1,
  last_error: state === "dead" ? "ConstraintError 23514, constraint invoices_total_check, table invoices" : null,
  outcome: state === "completed" ? noItems : null,
  unsettled_since: state === "completed" ? iso(now - 8 * minute) : null,
  invoices_count: 4,
  invoice_lines_count: 3
})

/** The last hour of a process that was busy, and failed for some of it. */
export const busy = (now: number): ReadonlyArray<Recent.Slot> => {
  const minutes = Array.from({ length: Recent.slots }, (_, index) => index)
  return minutes.map((index) => {
    const requests = 100 + ((index * 37) % 60)
    return {
      start: now - (now % Recent.step) - (Recent.slots - 1 - index) * Recent.step,
      requests,
      clientErrors: index % 7,
      serverErrors: index > 20 && index < 26 ? 50 : 0,
      latency: [0, 0, 10, 60, requests - 100, 20, 10, 0, 0, 0, 0, 0, 0, 0]
    }
  })
}

/** Checks by name: the problem of each, or null. */
export const checksOf = (problems: Readonly<Record<string, string | null>>) =>
  Effect.succeed(
    Record.map(problems, (problem): Health["checks"][string] =>
      problem === null ? { status: "pass" } : { status: "warn", output: problem }
    )
  )

interface Given {
  readonly checks?: HealthChecks["Service"]["checks"]
  readonly recent?: ReadonlyArray<Recent.Slot>
  readonly ready?: boolean
}

const pass = checksOf({ records: null, credentials: null, tasks: null, changes: null, processor: null })

/** A process: well, and without requests, unless given otherwise. */
export const processOf = ({ checks = pass, recent = [], ready = true }: Given = {}) => {
  const isReady = Effect.succeed(ready)
  const roles = ["data-api", "intake", "worker"] as const
  return Layer.merge(
    Layer.succeed(HealthChecks, HealthChecks.of({ roles, checks, isReady, stop: Effect.void })),
    Layer.succeed(Recent.Recent, Recent.Recent.of({ observe: () => {}, lastHour: Effect.succeed(recent) }))
  )
}

/** A database that has these tasks. */
export const databaseWith = (tasks: ReadonlyArray<Task> = []) =>
  Layer.effectDiscard(
    Effect.gen(function* () {
      const { sql } = yield* TestDatabase
      const insert = (table: string, rows: ReadonlyArray<object>) => {
        const names = Object.keys(rows[0] ?? { organization_id: "" }).join(", ")
        return sql.unsafe(
          `insert into ${table} (${names}) select ${names} from json_populate_recordset(null::${table}, $1)`,
          [JSON.stringify(rows)]
        )
      }
      const owners = new Set(tasks.map((task) => task.organization_id))
      const organizations = [...owners].map((id) => ({ organization_id: id, id }))
      const stored = tasks.map((task) => ({ ...Struct.omit(task, ["unsettled_since"]), fingerprint: "", payload: {} }))
      const unsettled = tasks.flatMap(({ id, organization_id, unsettled_since: since }) =>
        since === null ? [] : [{ organization_id, task_id: id, since }]
      )
      yield* insert("organizations", organizations)
      yield* insert("deletion_tasks", stored)
      yield* insert("deletions_unsettled", unsettled)
    }).pipe(Effect.orDie)
  ).pipe(Layer.provideMerge(TestDatabase.layerDatabases))

const databaseThat = (run: Database["run"]) =>
  Layer.unwrap(
    Effect.map(TestDatabase, ({ sql }) => layerShared(Object.assign(sql.bind(undefined), sql, { run })))
  ).pipe(Layer.provide(TestDatabase.layer))

export const unreachable = databaseThat(({ unavailable }) =>
  Effect.fail(unavailable(Failure.Unreachable({ reason: "test" })))
)

export const silent = databaseThat(() => Effect.never)

class Served extends Context.Service<
  Served,
  (request: Request, context: Context.Context<never>) => Promise<Response>
>()("practice-data/test/integration/operations/pageFixture/Served") {}

/** The listener, over a process and its databases. */
export const listener = <E, R>(services: Layer.Layer<HealthChecks | Recent.Recent | TaskDatabase, E, R>) =>
  Layer.effect(
    Served,
    Effect.gen(function* () {
      const handler = yield* HttpRouter.toHttpEffect(routes)
      const addressed = Effect.gen(function* () {
        const request = yield* HttpServerRequest.HttpServerRequest
        const address = request.headers["x-address"]
        const from = request.modify({ remoteAddress: Option.fromUndefinedOr(address) })
        return yield* Effect.provideService(handler, HttpServerRequest.HttpServerRequest, from)
      })
      return HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(Context.empty())(
        addressed
      )
    })
  ).pipe(Layer.provide(services))

/** Sends a request to the listener, from this machine by default. */
export const ask = Effect.fnUntraced(function* (path: string, host = "localhost:9464", address = "127.0.0.1") {
  const handle = yield* Served
  const headers = { host, accept: "text/html", "x-address": address }
  const request = new Request(`http://localhost:9464${path}`, { headers })
  const response = yield* Effect.promise(() => handle(request, Context.empty()))
  return { status: response.status, headers: response.headers, text: yield* Effect.promise(() => response.text()) }
})
