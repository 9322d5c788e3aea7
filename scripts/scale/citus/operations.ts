/**
 * Everything that the service and its commands ask of a distributed database, by the code that asks it. What may touch
 * more than one server says why: nothing that a request or a delivery waits for.
 */
import { DateTime, Duration, Effect, Layer } from "effect"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { searchable } from "../../../src/api/records/index.ts"
import { organization as organizations } from "../../../src/api/records/Organizations.ts"
import type { Resource } from "../../../src/api/records/Resource.ts"
import { State } from "../../../src/api/DeletionTasks.ts"
import { noteIfUnknown } from "../../../src/cli/Operators.ts"
import type { Database } from "../../../src/database/Database.ts"
import { layerShared } from "../../../src/database/Database.ts"
import { deliveryOf } from "../../../src/deletions/Delivery.ts"
import * as IntakeSecrets from "../../../src/deletions/IntakeSecrets.ts"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import type { Claim } from "../../../src/deletions/Task.ts"
import * as Tasks from "../../../src/deletions/Tasks.ts"
import { TaskReads } from "../../../src/deletions/TaskReads.ts"
import { deletions as deletionsCheck } from "../../../src/operations/doctor/DatabaseChecks.ts"
import * as AuditLog from "../../../src/operations/AuditLog.ts"
import * as Commands from "../../../src/operations/Commands.ts"
import { OperatorStore } from "../../../src/operations/OperatorStore.ts"
import { ClinicAccounts } from "../../../src/psp/ClinicAccounts.ts"
import { ChangeClock } from "../../../src/records/ChangeClock.ts"
import { Repositories } from "../../../src/records/Repository.ts"
import { type Answers, record, type Recorded } from "./Recorder.ts"

/** The organization that the statements are about. There need not be one. */
export const owner = "org_check_distributed"

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
export interface Operation {
  readonly name: string
  /** Fewer statements than this are a bug of this list: the code went another way. */
  readonly statements: number
  /** Of those of its statements that may touch several servers: why. */
  readonly reason?: string
  // Fails in many ways, since nothing is found: only its statements matter.
  readonly run: Effect.Effect<unknown, object, Services>
}

const services = Layer.mergeAll(
  Layer.provideMerge(Repositories.layer, ChangeClock.layer),
  TaskReads.layer,
  ClinicAccounts.layer,
  IntakeSecrets.IntakeSecrets.layer,
  OperatorStore.layer,
  Scheduler.layer(Duration.minutes(1))
)

type Services = Layer.Success<typeof services> | Layer.Success<ReturnType<typeof layerShared>>

const asOwner = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.provideService(effect, CurrentOrganization, CurrentOrganization.known(owner))

const time = "2026-01-31T09:30:00Z"

const values = { equals: "x", numberEquals: "1", since: time, before: time, includeMarked: true } as const

/** Searches of a resource: without a filter, with each, and with all; at the beginning and deep in it. */
const searches = (resource: Resource): ReadonlyArray<Operation> => {
  const each = Object.entries(resource.filters).map(([name, { kind }]): Readonly<Record<string, unknown>> => ({
    [name]: values[kind]
  }))
  const all: Readonly<Record<string, unknown>> = Object.assign({}, ...each)
  return [{}, ...each, all].flatMap((criteria) =>
    [0, 5000].map((offset) => ({
      name: `${resource.name} /search by ${Object.keys(criteria).join(", ") || "nothing"}${offset > 0 ? ", deep" : ""}`,
      statements: 1,
      run: asOwner(Effect.flatMap(Repositories, ({ of }) => of(resource).search(criteria, { limit: 100, offset })))
    }))
  )
}

const get = (resource: Resource): Operation => ({
  name: `${resource.name} /get`,
  statements: 1,
  run: asOwner(Effect.flatMap(Repositories, ({ of }) => of(resource).get("x")))
})

const scheduler = <A, E>(run: (of: Scheduler["Service"]) => Effect.Effect<A, E>) => Effect.flatMap(Scheduler, run)

const actor = { name: "check", source: "check" }

const deletions: ReadonlyArray<Operation> = [
  {
    name: "intake: a delivery",
    statements: 3,
    run: scheduler(({ schedule }) =>
      schedule(
        deliveryOf({ "idempotency-key": "check", "x-organization-id": owner }, { invoices: [{ invoice_id: "x" }] })
      )
    )
  },
  {
    name: "intake: the secrets",
    statements: 1,
    run: Effect.flatMap(IntakeSecrets.IntakeSecrets, (secrets) => secrets.of(owner))
  },
  {
    name: "worker: claim",
    statements: 6,
    reason: reasons.find,
    run: scheduler((of) => of.claim({ due: 1, expired: 1, alone: 1 }, lease))
  },
  {
    name: "worker: empty payloads",
    statements: 2,
    reason: reasons.find,
    run: Effect.flatMap(DateTime.now, (until) => scheduler((of) => of.empty(until, 1)))
  },
  { name: "worker: renew", statements: 1, run: scheduler((of) => of.renew([claim], lease)) },
  { name: "worker: run", statements: 1, run: scheduler((of) => of.run([claim])) },
  { name: "worker: run several", statements: 1, run: scheduler((of) => of.run([claim, claim])) },
  { name: "worker: fail", statements: 1, run: scheduler((of) => of.fail(claim, "check", lease)) },
  { name: "worker: release", statements: 2, run: scheduler((of) => of.release(claim)) },
  { name: "worker: until due", statements: 1, reason: reasons.find, run: scheduler((of) => of.untilDue) },
  {
    name: "tasks of an organization",
    statements: 1,
    run: asOwner(
      Effect.flatMap(TaskReads, (reads) =>
        reads.search({ states: State.literals, scheduledSince: undefined }, { limit: 100, offset: 0 })
      )
    )
  },
  {
    name: "a task of an organization",
    statements: 1,
    run: asOwner(Effect.flatMap(TaskReads, (reads) => reads.get(taskId)))
  },
  {
    name: "processor: the account of a clinic",
    statements: 1,
    run: asOwner(Effect.flatMap(ClinicAccounts, ({ find }) => find("x")))
  }
]

const operators = <A, E>(run: (of: OperatorStore["Service"]) => Effect.Effect<A, E>) =>
  Effect.flatMap(OperatorStore, run)

const { operators: reason } = reasons

const ofOperators: ReadonlyArray<Operation> = [
  { name: "operators: counts", statements: 1, reason, run: operators((of) => of.taskCounts) },
  {
    name: "operators: dead tasks",
    statements: 1,
    reason,
    run: operators((of) => of.tasks({ state: "dead", organization: undefined }, undefined))
  },
  {
    name: "operators: tasks",
    statements: 1,
    reason,
    run: operators((of) => of.tasks({ state: undefined, organization: undefined }, undefined))
  },
  {
    name: "operators: tasks of an organization",
    statements: 1,
    run: operators((of) => of.tasks({ state: undefined, organization: owner }, undefined))
  },
  { name: "operators: find a task", statements: 2, reason, run: operators((of) => of.findTasks(taskId, undefined)) },
  {
    name: "operators: find a task of an organization",
    statements: 1,
    run: operators((of) => of.findTasks("x", owner))
  },
  { name: "operators: a task", statements: 1, run: operators((of) => of.task(owner, taskId)) },
  { name: "operators: its history", statements: 1, run: operators((of) => of.history(owner, taskId)) },
  { name: "operators: the audit log", statements: 1, reason, run: operators((of) => of.audit(undefined)) },
  { name: "operators: replay a task", statements: 2, run: operators((of) => of.replay(actor, owner, taskId)) },
  {
    name: "commands: tasks list",
    statements: 1,
    reason,
    run: Tasks.list({ state: "dead", organization: undefined, limit: 10 })
  },
  {
    name: "commands: tasks list of an organization",
    statements: 1,
    run: Tasks.list({ state: "dead", organization: owner, limit: 10 })
  },
  { name: "commands: tasks show", statements: 1, reason, run: Tasks.show({ id: taskId, organization: undefined }) },
  {
    name: "commands: tasks replay",
    statements: 1,
    reason,
    run: Tasks.replay({ id: taskId, organization: undefined })
  },
  { name: "commands: secrets list", statements: 1, reason, run: IntakeSecrets.list(undefined) },
  { name: "commands: secrets list of an organization", statements: 1, run: IntakeSecrets.list(owner) },
  { name: "commands: secrets create", statements: 2, run: Commands.addSecret(actor, owner) },
  { name: "commands: secrets revoke", statements: 3, reason, run: IntakeSecrets.revoke("x") },
  { name: "commands: audit", statements: 1, reason, run: AuditLog.list(10) },
  { name: "commands: whether an organization is known", statements: 1, run: noteIfUnknown(owner, "") }
]

const ofDatabase = (sql: Database): ReadonlyArray<Operation> => [
  { name: "metrics: counts of tasks", statements: 1, reason, run: Tasks.counts(sql) },
  { name: "doctor: late and dead tasks", statements: 1, reason, run: deletionsCheck(sql) }
]

const resources: ReadonlyArray<Resource> = searchable

/** All of them. */
export const operations = (sql: Database): ReadonlyArray<Operation> => [
  ...resources.flatMap((resource) => [...searches(resource), get(resource)]),
  get(organizations),
  ...deletions,
  ...ofOperators,
  ...ofDatabase(sql)
]

// One that is found, so that the code goes on to claim, change and count.
const answers: Answers = (sql) => {
  if (/^\s*select organization_id as organization, id as "taskId"/.test(sql)) {
    return [{ organization: owner, taskId, dueAt: "2026-01-01 00:00:00+00" }]
  }
  if (/^\s*select organization_id as organization, least\(/.test(sql)) return [{ organization: owner, due: 1 }]
  if (/^\s*select count\(\*\)::integer as tasks/.test(sql)) return [{ tasks: 0, bytes: 0, isKnown: true }]
  if (/^\s*select organization_id as organization from intake_secrets/.test(sql)) return [{ organization: owner }]
  if (/^\s*update intake_secrets/.test(sql)) return [{ "?column?": 1 }]
  if (/^\s*select 1 from organizations/.test(sql)) return [{ "?column?": 1 }]
  if (sql.startsWith("select distinct organization_id from deletion_tasks")) return [{ organization_id: owner }]
  return []
}

/** The statements of each operation. */
export interface Asked {
  readonly operation: Operation
  readonly statements: ReadonlyArray<Recorded>
}

/** Has every operation make its statements over a database that is nowhere. */
export const recordAll = (sql: Database): Effect.Effect<ReadonlyArray<Asked>> =>
  Effect.forEach(operations(sql), (operation) =>
    Effect.map(record(sql, operation.run, answers), (statements): Asked => ({ operation, statements }))
  ).pipe(Effect.provide(services.pipe(Layer.provideMerge(layerShared(sql)))), Effect.scoped)
