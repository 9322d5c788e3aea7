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
import * as Erasure from "../../../src/operations/Erasure.ts"
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

/** What may touch several servers, and why. */
const reasons = {
  find: "Which tasks are due is asked of all servers, without a lock; they are claimed on the server of each organization.",
  operators: "An operator who names no organization looks at those of all servers. Nothing else waits for it."
} as const

/** Something that is asked of the database. */
interface Operation {
  readonly name: string
  /** Fewer statements than this are a bug of this list: the code went another way. */
  readonly statements: number
  // Fails in many ways, since nothing is found: only its statements matter.
  readonly run: Run
  /** Of those of its statements that may touch several servers: why. */
  readonly reason: string | undefined
}

const services = Layer.mergeAll(
  Layer.provideMerge(Repositories.layer, ChangeClock.layer),
  SenderTasks.layer,
  ClinicAccounts.layer,
  IntakeSecrets.layer,
  OperatorStore.layer,
  Scheduler.layer(Duration.minutes(1))
)

type Services = Layer.Success<typeof services> | Layer.Success<ReturnType<typeof layerShared>>

type Run = Effect.Effect<unknown, object, Services | CurrentOrganization>

/** The least number of statements, the work, and why it may touch several servers. */
type Entry = readonly [statements: number, run: Run, reason?: string]

const operationsOf = (entries: Readonly<Record<string, Entry>>): ReadonlyArray<Operation> =>
  Object.entries(entries).map(([name, [statements, run, reason]]) => ({ name, statements, run, reason }))

const time = "2026-01-31T09:30:00Z"

const values = { equals: "x", numberEquals: "1", since: time, before: time, includeMarked: true } as const

/** Searches of a resource: without a filter, with each, and with all; at the beginning and deep in it. */
const readsOf = (resource: Resource): ReadonlyArray<Operation> => {
  const each = Object.entries(resource.filters).map(([name, { kind }]): Readonly<Record<string, unknown>> => ({
    [name]: values[kind]
  }))
  const all: Readonly<Record<string, unknown>> = Object.assign({}, ...each)
  const searches = [{}, ...each, all].flatMap((criteria) =>
    [0, 5000].map((offset): readonly [string, Entry] => [
      `${resource.name} /search by ${Object.keys(criteria).join(", ") || "nothing"}${offset > 0 ? ", deep" : ""}`,
      [1, Effect.flatMap(Repositories, ({ of }) => of(resource).search(criteria, { limit: 100, offset }))]
    ])
  )
  const get: Entry = [1, Effect.flatMap(Repositories, ({ of }) => of(resource).get("x"))]
  return operationsOf({ ...Object.fromEntries(searches), [`${resource.name} /get`]: get })
}

type Work<Service> = (service: Service) => Run
const scheduler = (work: Work<Scheduler["Service"]>) => Effect.flatMap(Scheduler, work)
const reads = (work: Work<SenderTasks["Service"]>) => Effect.flatMap(SenderTasks, work)
const operators = (work: Work<OperatorStore["Service"]>) => Effect.flatMap(OperatorStore, work)

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

const { find, operators: any } = reasons

const others = (sql: Database) =>
  operationsOf({
    "intake: a delivery": [3, scheduler((of) => of.schedule(delivery))],
    "intake: the secrets": [1, Effect.flatMap(IntakeSecrets, (secrets) => secrets.of(owner))],
    "worker: claim": [6, scheduler((of) => of.claim({ due: 1, expired: 1, isolated: 1 }, lease)), find],
    "worker: empty payloads": [2, scheduler((of) => of.empty(DateTime.makeUnsafe(0), 1)), find],
    "worker: renew": [1, scheduler((of) => of.renew([claim], lease))],
    "worker: run": [7, scheduler((of) => of.run([claim]))],
    "worker: run several": [7, scheduler((of) => of.run([claim, claim]))],
    "worker: apply deletions again": [
      5,
      Effect.forEach(Deletion.settleAll, (statement) => sql.unsafe(statement, [owner]))
    ],
    "worker: fail": [1, scheduler((of) => of.fail(claim, "check", lease))],
    "worker: release": [1, scheduler((of) => of.release(claim))],
    "worker: until due": [1, scheduler((of) => of.untilDue), find],
    "tasks of an organization": [1, reads((of) => of.search(everyTask, { limit: 100, offset: 0 }))],
    "a task of an organization": [1, reads((of) => of.get(taskId))],
    "processor: the account of a clinic": [1, Effect.flatMap(ClinicAccounts, (accounts) => accounts.find("x"))],
    "operators: counts": [1, operators((of) => of.taskCounts), any],
    "operators: dead tasks": [1, operators((of) => of.tasks({ state: "dead", ...nobody })), any],
    "operators: tasks": [1, operators((of) => of.tasks({ ...anyState, ...nobody })), any],
    "operators: tasks of one": [1, operators((of) => of.tasks({ ...anyState, ...one }))],
    "operators: find a task": [2, operators((of) => of.findTasks(taskId, undefined)), any],
    "operators: find a task of one": [1, operators((of) => of.findTasks("x", owner))],
    "operators: a task": [1, operators((of) => of.task(owner, taskId))],
    "operators: its history": [1, operators((of) => of.audit({ ...one, target: taskId }))],
    "operators: the audit log": [1, operators((of) => of.audit({})), any],
    "operators: replay a task": [2, operators((of) => of.replay(actor, { organization: owner, id: taskId }))],
    "operators: the items of a task": [2, operators((of) => of.items(owner, taskId))],
    "operators: undo a task": [3, operators((of) => of.undo(actor, { organization: owner, task: taskId }))],
    "operators: undo an invoice": [
      3,
      operators((of) => of.undo(actor, { organization: owner, kind: "invoice", id: "x" }))
    ],
    "commands: deletions list": [1, Facts.list(everyFact, 10), any],
    "commands: deletions list of an id": [2, Facts.list({ ...everyFact, id: "x" }, 10), any],
    "commands: deletions list of one": [1, Facts.list({ ...everyFact, ...one, id: "x" }, 10)],
    "commands: tasks cancel": [2, Facts.cancel({ id: taskId, ...one })],
    "commands: tasks list": [1, Tasks.list({ state: "dead", ...nobody }, 10), any],
    "commands: tasks list of one": [1, Tasks.list({ state: "dead", ...one }, 10)],
    "commands: tasks show": [1, Tasks.show({ id: taskId, ...nobody }), any],
    "commands: tasks replay": [1, Tasks.replay({ id: taskId, ...nobody }), any],
    "commands: secrets list": [1, SigningSecrets.list(undefined), any],
    "commands: secrets list of one": [1, SigningSecrets.list(owner)],
    "commands: secrets create": [2, Commands.addSecret(actor, owner)],
    "commands: secrets revoke": [3, SigningSecrets.revoke("x"), any],
    "commands: audit": [1, Commands.auditLog(10), any],
    "commands: organizations list": [4, Organizations.list(10), any],
    "commands: organizations create": [2, Organizations.create(actor, named)],
    "commands: organizations rename": [1, Organizations.rename(actor, named)],
    "commands: organizations delete, in numbers": [
      19,
      Effect.all([Organizations.countRecords(owner), Organizations.stateOf(owner)])
    ],
    "commands: organizations delete": [45, Organizations.deleteAll(actor, owner)],
    "commands: organizations delete, the end": [20, Organizations.finish(actor, owner)],
    "commands: erase, in numbers": [60, Erasure.countRecords({ organization: owner, client: "x" })],
    "commands: erase": [100, Erasure.eraseClient(actor, { organization: owner, client: "x" })],
    "metrics: counts of tasks": [1, Tasks.counts(sql), any],
    "doctor: late and dead tasks": [1, deletionsCheck(sql), any]
  })

// One that is found, so that the code goes on to claim, change and count.
const answers: Answers = (sql, params) => {
  // The first batch has a record, and the second one none.
  if (/^\s*select t\.id as text from/.test(sql)) return params.at(-1) === "" ? [{ text: "x" }] : []
  if (/^\s*select organization_id as organization, id as "taskId"/.test(sql)) {
    return [{ organization: owner, taskId, dueAt: "2026-01-01 00:00:00+00" }]
  }
  if (/^\s*select clock_timestamp\(\)::text/.test(sql)) return [{ text: time }]
  if (/claim_token = claimed.token[^]*for update\s+\) task$/.test(sql)) return [{ organization: owner, taskId }]
  if (/^\s*select organization_id as organization, true/.test(sql)) {
    return [{ organization: owner, isDue: true, isLast: false }]
  }
  if (/^\s*select count\(\*\)::integer as tasks/.test(sql)) return [{ tasks: 0, bytes: 0, isKnown: true }]
  if (/^\s*select organization_id as text from intake_secrets/.test(sql)) return [{ text: owner }]
  if (/^\s*update intake_secrets/.test(sql)) return [{ "?column?": 1 }]
  if (/^\s*select 1 from organizations/.test(sql)) return [{ "?column?": 1 }]
  return []
}

/** The statements of each operation. */
export interface Asked {
  readonly operation: Operation
  readonly statements: ReadonlyArray<Recorded>
}

/** Has every operation make its statements over a database that is nowhere. */
export const recordAll = (sql: Database): Effect.Effect<ReadonlyArray<Asked>> =>
  Effect.forEach(
    [...searchable.flatMap((resource) => readsOf(resource)), ...readsOf(organizations), ...others(sql)],
    (operation) => Effect.map(record(sql, operation.run, answers), (statements): Asked => ({ operation, statements }))
  ).pipe(
    // On behalf of the owner where the code asks for an organization.
    Effect.provideService(CurrentOrganization, CurrentOrganization.of({ id: owner })),
    Effect.provide(services.pipe(Layer.provideMerge(layerShared(sql)))),
    Effect.scoped
  )
