/**
 * Everything that the service and its commands ask of a distributed database, by the code that asks it. What may touch
 * more than one server says why: nothing that a request or a delivery waits for.
 */
import { DateTime, Duration, Effect, Layer } from "effect"
import { CurrentOrganization } from "../../../src/api/Authorization.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { organization as organizations } from "../../../src/api/records/Organizations.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { State } from "../../../src/api/DeletionTasks.ts"
import { type Database, layerShared } from "../../../src/database/Database.ts"
import * as Deletion from "../../../src/deletions/Deletion.ts"
import { deliveryOf } from "../../../src/deletions/Delivery.ts"
import * as Facts from "../../../src/deletions/Facts.ts"
import { IntakeSecrets } from "../../../src/intake/IntakeSecrets.ts"
import * as SigningSecrets from "../../../src/keys/SigningSecrets.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import type { Claim } from "../../../src/deletions/WorkerTasks.ts"
import * as Tasks from "../../../src/deletions/OperatorTasks.ts"
import { SenderTasks } from "../../../src/deletions/SenderTasks.ts"
import { deletions as deletionsCheck } from "../../../src/operations/doctor/DatabaseChecks.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import * as Organizations from "../../../src/operations/Organizations.ts"
import { OperatorStore } from "../../../src/operations/OperatorStore.ts"
import { ClinicAccounts } from "../../../src/psp/PspReads.ts"
import { ChangeClock } from "../../../src/changes/ChangeClock.ts"
import { Repositories } from "../../../src/records/Repository.ts"
import { type Answers, record, type Recorded } from "./Recorder.ts"

/** The organization that the statements are about. There need not be one. */
const owner = "org_check_distributed"

const taskId = "00000000-0000-5000-8000-000000000001"

const claim: Claim = {
  organization: owner,
  taskId,
  idempotencyKey: "check",
  scheduledFor: DateTime.makeUnsafe(0),
  token: taskId,
  attempt: 2,
  isTakeover: false
}

const lease = Duration.seconds(1)

// Why some operations may touch several servers.
const find =
  "Which tasks are due is asked of all servers, without a lock; they are claimed on the server of each organization."
const any = "An operator who names no organization looks at those of all servers. Nothing else waits for it."

const services = Layer.mergeAll(
  Layer.provideMerge(Repositories.layer, ChangeClock.layer),
  SenderTasks.layer,
  ClinicAccounts.layer,
  IntakeSecrets.layer,
  OperatorStore.layer,
  Scheduler.layer(Duration.minutes(1))
)

type Services = Layer.Success<typeof services> | Layer.Success<ReturnType<typeof layerShared>>

/** Fails in many ways, since nothing is found: only its statements matter. */
type Run = Effect.Effect<unknown, object, Services | CurrentOrganization>

/** The name, the least number of statements, the work, and why it may touch several servers. */
type Entry = readonly [name: string, statements: number, run: Run, reason?: string]

const time = "2026-01-31T09:30:00Z"

const values = { equals: "x", numberEquals: "1", since: time, before: time, includeMarked: true } as const

/** Reads of a resource: searches without a filter, with each, and with all, at the beginning and deep in it; and a get. */
const readsOf = (resource: Resource): ReadonlyArray<Entry> => {
  const each = Object.entries(resource.filters).map(([name, { kind }]): Readonly<Record<string, unknown>> => ({
    [name]: values[kind]
  }))
  const all: Readonly<Record<string, unknown>> = Object.assign({}, ...each)
  const searches = [{}, ...each, all].flatMap((criteria) =>
    [0, 5000].map((offset): Entry => {
      const filters = Object.keys(criteria).join(", ") || "nothing"
      const name = `${resource.name} /search by ${filters}${offset > 0 ? ", deep" : ""}`
      return [name, 1, Repositories.use(({ of }) => of(resource).search(criteria, { limit: 100, offset }))]
    })
  )
  return [...searches, [`${resource.name} /get`, 1, Repositories.use(({ of }) => of(resource).get("x"))]]
}

const actor = { name: "check", source: "check" }
const named = { id: owner, name: "check" }
const delivery = deliveryOf(
  { "idempotency-key": "check", "x-organization-id": owner },
  { invoices: [{ invoice_id: "x" }] }
)
const everyTask = { states: State.literals, scheduledSince: undefined }
const nobody = { organization: undefined }
const one = { organization: owner }
const everyFact = { id: undefined, verdict: undefined, ...nobody }
const anyState = { state: undefined }

const others = (sql: Database): ReadonlyArray<Entry> => [
  ["intake: a delivery", 3, Scheduler.use((of) => of.schedule(delivery))],
  ["intake: the secrets", 1, IntakeSecrets.use((of) => of.of(owner))],
  ["worker: claim", 6, Scheduler.use((of) => of.claim({ due: 1, expired: 1, isolated: 1 }, lease)), find],
  ["worker: empty payloads", 2, Scheduler.use((of) => of.empty(DateTime.makeUnsafe(0), 1)), find],
  ["worker: renew", 1, Scheduler.use((of) => of.renew([claim], lease))],
  ["worker: run", 7, Scheduler.use((of) => of.run([claim]))],
  ["worker: run several", 7, Scheduler.use((of) => of.run([claim, claim]))],
  ["worker: apply deletions again", 5, Effect.forEach(Deletion.settleAll, (text) => sql.unsafe(text, [owner]))],
  ["worker: fail", 1, Scheduler.use((of) => of.fail(claim, "check", lease))],
  ["worker: release", 1, Scheduler.use((of) => of.release(claim))],
  ["worker: until due", 1, Scheduler.use((of) => of.untilDue), find],
  ["tasks of an organization", 1, SenderTasks.use((of) => of.search(everyTask, { limit: 100, offset: 0 }))],
  ["a task of an organization", 1, SenderTasks.use((of) => of.get(taskId))],
  ["processor: the account of a clinic", 1, ClinicAccounts.use((of) => of.find("x"))],
  ["operators: counts", 1, OperatorStore.use((of) => of.taskCounts), any],
  ["operators: dead tasks", 1, OperatorStore.use((of) => of.tasks({ state: "dead", ...nobody })), any],
  ["operators: tasks", 1, OperatorStore.use((of) => of.tasks({ ...anyState, ...nobody })), any],
  ["operators: tasks of one", 1, OperatorStore.use((of) => of.tasks({ ...anyState, ...one }))],
  ["operators: find a task", 2, OperatorStore.use((of) => of.findTasks(taskId, undefined)), any],
  ["operators: find a task of one", 1, OperatorStore.use((of) => of.findTasks("x", owner))],
  ["operators: a task", 1, OperatorStore.use((of) => of.task(owner, taskId))],
  ["operators: its history", 1, OperatorStore.use((of) => of.audit({ ...one, target: taskId }))],
  ["operators: the audit log", 1, OperatorStore.use((of) => of.audit({})), any],
  ["operators: replay a task", 2, OperatorStore.use((of) => of.replay(actor, { ...one, id: taskId }))],
  ["operators: the items of a task", 2, OperatorStore.use((of) => of.items(owner, taskId))],
  ["operators: undo a task", 3, OperatorStore.use((of) => of.undo(actor, { ...one, task: taskId }))],
  ["operators: undo an invoice", 3, OperatorStore.use((of) => of.undo(actor, { ...one, kind: "invoice", id: "x" }))],
  ["commands: deletions list", 1, Facts.list(everyFact, 10), any],
  ["commands: deletions list of an id", 2, Facts.list({ ...everyFact, id: "x" }, 10), any],
  ["commands: deletions list of one", 1, Facts.list({ ...everyFact, ...one, id: "x" }, 10)],
  ["commands: tasks cancel", 2, Facts.cancel({ id: taskId, ...one })],
  ["commands: tasks list", 1, Tasks.list({ state: "dead", ...nobody }, 10), any],
  ["commands: tasks list of one", 1, Tasks.list({ state: "dead", ...one }, 10)],
  ["commands: tasks show", 1, Tasks.show({ id: taskId, ...nobody }), any],
  ["commands: tasks replay", 1, Tasks.replay({ id: taskId, ...nobody }), any],
  ["commands: secrets list", 1, SigningSecrets.list(undefined), any],
  ["commands: secrets list of one", 1, SigningSecrets.list(owner)],
  ["commands: secrets create", 2, Commands.addSecret(actor, owner)],
  ["commands: secrets revoke", 3, SigningSecrets.revoke("x"), any],
  ["commands: audit", 1, Commands.auditLog(10), any],
  ["commands: organizations list", 3, Organizations.list(10), any],
  ["commands: organizations create", 1, Organizations.create(actor, named)],
  ["metrics: counts of tasks", 1, Tasks.counts(sql), any],
  ["doctor: late and dead tasks", 1, deletionsCheck(sql), any]
]

/** The rows that some statements return, so that the code goes on to claim, change and count. */
const rows: ReadonlyArray<readonly [statement: RegExp, row: object]> = [
  [/^\s*select t\.id as text from/, { text: "x" }],
  [
    /^\s*select organization_id as organization, id as "taskId"/,
    { organization: owner, taskId, dueAt: "2026-01-01 00:00:00+00" }
  ],
  [/^\s*select clock_timestamp\(\)::text/, { text: time }],
  [/claim_token = claimed.token[^]*for update\s+\) task$/, { organization: owner, taskId }],
  [/^\s*select organization_id as organization, true/, { organization: owner, isDue: true, isLast: false }],
  [/^\s*select count\(\*\)::integer as tasks/, { tasks: 0, bytes: 0, isKnown: true }],
  [/^\s*select organization_id as text from intake_secrets/, { text: owner }],
  [/^\s*update intake_secrets/, { "?column?": 1 }],
  [/^\s*select 1 from organizations/, { "?column?": 1 }]
]

const answers: Answers = (sql, params) =>
  // The first batch has a record, and the second one none.
  /^\s*select t\.id as text from/.test(sql) && params.at(-1) !== ""
    ? []
    : rows.flatMap(([statement, row]) => (statement.test(sql) ? [row] : []))

/** The statements of an operation, which are too few if the code went another way. */
export interface Asked {
  readonly operation: {
    readonly name: string
    /** The least number of statements. */
    readonly statements: number
    /** Of those of its statements that may touch several servers: why. */
    readonly reason: string | undefined
  }
  readonly statements: ReadonlyArray<Recorded>
}

/** Has every operation make its statements over a database that is nowhere. */
export const recordAll = (sql: Database): Effect.Effect<ReadonlyArray<Asked>> =>
  Effect.forEach([...[...searchable, organizations].flatMap(readsOf), ...others(sql)], ([name, least, run, reason]) =>
    Effect.map(record(sql, run, answers), (statements): Asked => ({
      operation: { name, statements: least, reason },
      statements
    }))
  ).pipe(
    // On behalf of the owner where the code asks for an organization.
    Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: owner })),
    Effect.provide(services.pipe(Layer.provideMerge(layerShared(sql)))),
    Effect.scoped
  )
