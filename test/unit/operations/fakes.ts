/** Made-up data of the operators' pages, and their listener over it in this process, without a socket. */
import { Context, Effect, Layer, Option, Record, Redacted, type Scope } from "effect"
import { HttpEffect, HttpRouter, type HttpServerRequest } from "effect/http"
import type { State } from "../../../src/api/DeletionTasks.ts"
import type { Health } from "../../../src/api/IntakeApi.ts"
import { taskIdOf } from "../../../src/deletions/Delivery.ts"
import type { SigningSecret } from "../../../src/keys/SigningSecrets.ts"
import { Cancel, type Fact, type Target } from "../../../src/deletions/Facts.ts"
import { Replay, type Task } from "../../../src/deletions/OperatorTasks.ts"
import type { ApiKey } from "../../../src/keys/ApiKeys.ts"
import * as Recent from "../../../src/observability/Recent.ts"
import { Token } from "../../../src/operations/Access.ts"
import type { Entry } from "../../../src/operations/Commands.ts"
import { iso } from "../../../src/operations/Format.ts"
import { Figures, type Snapshot } from "../../../src/operations/Figures.ts"
import { routes } from "../../../src/operations/OperationsListener.ts"
import { OperatorStore, Problem } from "../../../src/operations/OperatorStore.ts"

const minute = 60_000
const day = 24 * 60 * minute

const due = (state: State) => state === "scheduled" || state === "running"

/** A task of a state, by its Idempotency-Key. */
export const taskOf = (organization: string, key: string, state: State, now: number): Task => ({
  organization_id: organization,
  id: taskIdOf(organization, key),
  idempotency_key: key,
  state,
  received_at: iso(now - 10 * minute),
  scheduled_for: iso(now - 9 * minute),
  due_at: state === "scheduled" ? iso(now + 2 * minute) : state === "running" ? iso(now + 900) : null,
  started_at: state === "scheduled" ? null : iso(now - 9 * minute),
  finished_at: due(state) ? null : iso(now - 8 * minute),
  attempts: state === "scheduled" ? 0 : state === "dead" ? 8 : 1,
  last_error: state === "dead" ? "ConstraintError 23514, constraint invoices_total_check, table invoices" : null,
  outcome:
    state === "completed"
      ? {
          invoices: { deleted: 3, not_found: 1, clinic_mismatch: 0, client_mismatch: 0 },
          invoice_lines: { deleted: 1, not_found: 0, invoice_mismatch: 2, clinic_mismatch: 0 },
          lines_of_invoices: 9
        }
      : null,
  unsettled_since: state === "completed" ? iso(now - 8 * minute) : null,
  invoices_count: 4,
  invoice_lines_count: 3,
  trace_parent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
})

/** An item of a task: an invoice that was deleted, did not fit, or is remembered. */
export const factOf = ({ id: task_id, organization_id }: Task, verdict: Fact["verdict"], now: number): Fact => ({
  organization_id,
  task_id,
  kind: "invoice",
  id: `invoice_${verdict}`,
  verdict,
  deleted_at: iso(now - 8 * minute),
  undone_at: null,
  clinic_id: "clinic_1",
  client_id: null,
  invoice_id: null
})

/** The counts of a process that was busy for a day, and failed for some of it. */
export const busy = (now: number): Recent.Snapshot => {
  const counter = Recent.make()
  const paths = ["charges", "invoices", "consumption-logs", "pets", "payment-plans"]
  const organizations = ["oakridge", "harbor", "willow_creek_veterinary_partners"]
  for (let index = 0; index < 600; index++) {
    const isFailing = index > 200 && index < 260
    counter.record(now - day + (index + 1) * (day / 600), {
      endpoint: `/api/v3/${paths[index % paths.length]}/${index % 3 === 0 ? "get" : "search"}`,
      organization: `org_${organizations[index % organizations.length]}`,
      isKnown: true,
      status: isFailing ? 503 : index % 29 === 0 ? 422 : 200,
      duration: 1 + (index % 41),
      refusal: isFailing ? "outage" : undefined
    })
  }
  return counter.snapshot(now)
}

/** Checks by name: the problem of each, or null. */
export const checksOf = Record.map((problem: string | null): Health["checks"][string] =>
  problem === null ? { status: "pass" } : { status: "warn", output: problem }
)

/** A process that is well. */
export const processOf = (now: number, some: Partial<Snapshot> = {}): Snapshot => ({
  pid: 4242,
  startedAt: now - 26 * 60 * minute,
  version: "0.1.0",
  roles: ["data-api", "intake", "worker"],
  metrics: `process_resident_memory_bytes ${180 * 1024 ** 2}
practice_data_event_loop_delay_seconds{at="p99"} 0.0032`,
  recent: Recent.make().snapshot(now),
  ready: true,
  checks: checksOf({ records: null, credentials: null, tasks: null, changes: null, processor: null }),
  ...some
})

export const figures = (snapshot: Effect.Effect<Snapshot>) =>
  Layer.effect(Figures, Figures.make(snapshot, Effect.succeed("# no metrics\n")))

/** The id of the key of `keysOf` that is revoked. */
export const revokedId = "key_7aVVQ0aXbT1Zk"

/** Keys: in use, and revoked without a use. */
export const keysOf = (now: number): ReadonlyArray<ApiKey> => {
  const key = { organization_id: "org_oakridge", name: "Warehouse sync", created_at: iso(now - 90 * day) }
  return [
    { ...key, id: "key_3nVVQ0aXbT1Zk", prefix: "pda_live_3nV", last_used_on: iso(now).slice(0, 10), revoked_at: null },
    { ...key, id: revokedId, prefix: "pda_live_7aV", last_used_on: null, revoked_at: iso(now - 30 * day) }
  ]
}

/** An entry about a task. */
export const entryOf = ({ id, organization_id }: Task, now: number): Entry => ({
  organization_id,
  id: "0b54a3a2-7d53-4a39-9d43-2f3c6b1b7a10",
  at: iso(now - 3 * minute),
  actor: "alice",
  source: "127.0.0.1",
  action: "task.replay",
  target: id,
  result: "replayed"
})

const given = <A>(rows: ReadonlyArray<A> | undefined) =>
  rows === undefined
    ? Effect.fail(new Problem({ status: 503, message: "There is no such store." }))
    : Effect.succeed(rows)

const pageOf = <A>(rows: ReadonlyArray<A> | undefined) =>
  Effect.map(given(rows), (found) => ({ rows: [...found], isPartial: false }))

/** A store that has these rows, in their order. Rows that are not given cannot be read. */
export const store = (rows: {
  readonly tasks?: ReadonlyArray<Task>
  readonly facts?: ReadonlyArray<Fact>
  readonly keys?: ReadonlyArray<ApiKey>
  readonly secrets?: ReadonlyArray<SigningSecret>
  readonly audit?: ReadonlyArray<Entry>
}) =>
  Layer.sync(OperatorStore, () => {
    let { facts, tasks } = rows
    const factsOf = (id: string) => Effect.map(given(facts), (all) => all.filter(({ task_id }) => task_id === id))
    const undoable = (target: Target) =>
      facts?.filter(
        (fact) => fact.undone_at === null && ("task" in target ? fact.task_id === target.task : fact.id === target.id)
      ) ?? []
    const one = Effect.fnUntraced(function* (organization: string, id: string) {
      const found = (yield* given(tasks)).find((task) => task.organization_id === organization && task.id === id)
      return found ?? (yield* new Problem({ status: 404, message: "There is no such deletion." }))
    })
    const pageIf = (organization: string | undefined, isWanted: (task: Task) => boolean) =>
      Effect.suspend(() =>
        pageOf(
          tasks?.filter((task) => isWanted(task) && (organization ?? task.organization_id) === task.organization_id)
        )
      )
    const dead = (reason = "") => tasks?.filter(({ last_error }) => last_error?.includes(reason)) ?? []
    const counts = { scheduled: 1, running: 0, dead: 1, oldest_due_at: null, unsettled_since: null, now: iso(0) }
    return {
      taskCounts: Effect.as(given(tasks), counts),
      tasks: ({ organization, state }) => pageIf(organization, (task) => (state ?? task.state) === task.state),
      findTasks: (text, organization) =>
        pageIf(organization, ({ id, idempotency_key }) => [id, idempotency_key].includes(text)),
      task: one,
      keys: ({ id }) => pageOf(rows.keys?.filter((key) => (id ?? key.id) === key.id)),
      secrets: ({ id }) => pageOf(rows.secrets?.filter((secret) => (id ?? secret.id) === secret.id)),
      countDead: ({ reason }) => Effect.sync(() => dead(reason).length),
      replayDead: (_, { reason }) =>
        Effect.sync(() => {
          const replayed = dead(reason)
          tasks = tasks?.filter((task) => !replayed.includes(task))
          return replayed.length
        }),
      createKey: () => Effect.succeed({ id: "key_new", secret: Redacted.make("pda_live_new") }),
      revokeKey: (_, id) => Effect.succeed(id === revokedId ? Option.none() : Option.some("org_oakridge")),
      addSecret: () => Effect.succeed({ id: "secret_new", secret: Redacted.make("whsec_new") }),
      revokeSecret: () => Effect.succeedSome({ organization: "org_oakridge", left: 0 }),
      audit: ({ target }) => pageOf(rows.audit?.filter((entry) => (target ?? entry.target) === entry.target)),
      items: (_, id) =>
        Effect.map(factsOf(id), (found) => ({
          counts: found.map(({ kind, undone_at, verdict }) => ({
            kind,
            verdict: undone_at ? "undone" : verdict,
            items: 1
          })),
          rows: [...found],
          isPartial: false
        })),
      countUndoable: (target) => Effect.sync(() => undoable(target).length),
      undo: (_, target) =>
        Effect.sync(() => {
          const undone = undoable(target)
          facts = facts?.map((fact) => (undone.includes(fact) ? { ...fact, undone_at: iso(0) } : fact))
          return undone.length
        }),
      cancel: Effect.fnUntraced(function* (_, { id, organization = "" }) {
        const task = yield* one(organization, id)
        if (task.state !== "dead") return Cancel.NotOpen({ state: task.state })
        tasks = tasks?.map((each) => (each === task ? { ...task, state: "cancelled" } : each))
        return Cancel.Cancelled({ organization, undone: 0 })
      }),
      replay: Effect.fnUntraced(function* (_, { id, organization = "" }) {
        const task = yield* one(organization, id)
        if (task.state !== "dead") return Replay.NotDead({ state: task.state })
        const replayed: Task = { ...task, state: "scheduled", attempts: 0, finished_at: null }
        tasks = tasks?.map((each) => (each === task ? replayed : each))
        return Replay.Replayed({ organization })
      })
    }
  })

/** The operators' token. */
export const token = "correct-horse-battery"

class Served extends Context.Service<Served, (request: Request) => Promise<Response>>()(
  "practice-data/test/unit/operations/fakes/Served"
) {}

/** The configuration of the listener. */
export interface Configured {
  readonly host?: string
  readonly token?: string | undefined
}

/** The listener, over figures and a store. */
export const listener = (
  services: Layer.Layer<Figures | OperatorStore>,
  { host = "127.0.0.1", token: own }: Configured = { token }
) =>
  Layer.effect(
    Served,
    Effect.gen(function* () {
      const handler = yield* HttpRouter.toHttpEffect(routes(host))
      const context = yield* Effect.context<Token>()
      return HttpEffect.toWebHandlerWith<Token, Token | HttpServerRequest.HttpServerRequest | Scope.Scope>(context)(
        handler
      )
    })
  ).pipe(Layer.provide([services, Token.layer(Option.map(Option.fromNullishOr(own), (text) => Redacted.make(text)))]))

/** A request: its differences from a reader's on this machine. */
export interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  /** The fields of a form. */
  readonly form?: Readonly<Record<string, string>>
}

/** HTTP Basic. */
export const basic = (name: string, password: string) => ({
  authorization: `Basic ${Buffer.from(`${name}:${password}`).toString("base64")}`
})

/** Sends a request to the listener. */
export const ask = Effect.fnUntraced(function* (path: string, { form, headers = {}, method }: Asked = {}) {
  const handle = yield* Served
  const request = new Request(`http://localhost:9464${path}`, {
    method: method ?? (form === undefined ? "GET" : "POST"),
    headers: { host: "localhost:9464", accept: "text/html", ...headers },
    ...(form === undefined ? {} : { body: new URLSearchParams(form) })
  })
  const response = yield* Effect.promise(() => handle(request))
  return { status: response.status, headers: response.headers, text: yield* Effect.promise(() => response.text()) }
})
