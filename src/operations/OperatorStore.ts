/**
 * The reads and changes of the operators' pages, over the databases of tasks, API keys and records. Each is bounded, ends
 * within two seconds, and fails with a text for a person.
 */
import { Context, Duration, Effect, Layer, Option, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import {
  CredentialDatabase,
  type Database,
  isSameDatabase,
  RecordDatabase,
  TaskDatabase
} from "../database/Database.ts"
import { codeOf } from "../database/SqlFailure.ts"
import * as Store from "../database/Store.ts"
import { isoTime, rowsOf } from "../database/Columns.ts"
import * as Tasks from "../deletions/Tasks.ts"
import { IntakeSecret } from "../deletions/IntakeSecrets.ts"
import { ApiKey } from "../keys/ApiKeys.ts"
import * as Commands from "./Commands.ts"

/** A read or a change that failed, as the status of its response and a sentence for a person. */
export class Problem extends Schema.TaggedError<Problem>()("Problem", { status: Schema.Int, message: Schema.String }) {}

/** A store without a result. */
const unavailable = (message: string) => new Problem({ status: 503, message })

const Text = Schema.NullOr(Schema.String)

/** An open transaction that has written. Readers of a replica get changes after it once it ends. */
export const Transaction = Schema.Struct({
  pid: Schema.NullOr(Schema.Int),
  prepared: Text,
  database: Text,
  user: Text,
  application: Text,
  state: Text,
  since: Text
})
export type Transaction = typeof Transaction.Type

/** Rows, and the place after which the next page begins, if there is one. */
export interface Page<A> {
  readonly rows: ReadonlyArray<A>
  readonly next: string | undefined
}

/** The number of rows on a page. */
export const pageSize = 50

const within = Duration.millis(1500)

const refused = (store: string, error: SqlError): Effect.Effect<never, SqlError | Problem> => {
  const code = codeOf(error)
  if (error.reason._tag === "AuthorizationError") {
    return Effect.fail(unavailable(`The database role of this process may not do this in the ${store} store.`))
  }
  // An undefined table or column.
  if (["42P01", "42703"].includes(code)) return Effect.fail(unavailable(`The ${store} store lacks migrations.`))
  // A value of another type.
  return Effect.fail(code.startsWith("22") ? new Problem({ status: 422, message: "A parameter is invalid." }) : error)
}

/** Runs statements in their turn and in time. */
const runner =
  <I>(tag: Context.Key<I, Database>, database: Database, store: string) =>
  <A>(
    statements: Effect.Effect<A, SqlError, I>,
    describe = (failure: Store.Failure) => `The ${store} store ${Store.describe(failure)}.`
  ): Effect.Effect<A, Problem> =>
    database.run(
      { key: "operators", within, unavailable: (failure) => unavailable(describe(failure)) },
      Effect.provideService(statements, tag, database).pipe(
        Effect.catchTag("SqlError", (error) => refused(store, error))
      )
    )

const PlaceText = Schema.StringFromBase64Url.pipe(
  Schema.decodeTo(Schema.fromJsonString(Schema.Tuple([Schema.String, Schema.String, Schema.String])))
)

/** Decodes a place; undefined where the text is none. */
const placeOf = (text = ""): Tasks.Place | undefined => Option.getOrUndefined(Schema.decodeOption(PlaceText)(text))

const paged = <Row extends object>(
  found: ReadonlyArray<Row & { readonly position: string; readonly organization_id: string; readonly id: string }>
) => {
  const rows = found.slice(0, pageSize)
  const last = found.length > pageSize ? rows.at(-1) : undefined
  const place = last && Schema.encodeOption(PlaceText)([last.position, last.organization_id, last.id])
  return { rows, next: place && Option.getOrUndefined(place) }
}

const keyRows = rowsOf(Schema.Struct({ ...ApiKey.fields, position: Schema.String }))
const secretRows = rowsOf(Schema.Struct({ ...IntakeSecret.fields, position: Schema.String }))

export interface CredentialFilter {
  readonly organization: string | undefined
  readonly id?: string | undefined
}

/** A page of credentials by organization and id, without the credentials themselves. */
const credentialPage = (
  sql: Database,
  table: string,
  columns: string,
  { id, organization }: CredentialFilter,
  after: string | undefined
) => {
  const place = placeOf(after)
  return sql`
    select organization_id, id, ${sql.literal(`${columns}${isoTime("created_at")}, ${isoTime("revoked_at")}`)}, '' as position
    from ${sql.literal(table)}
    where ${organization === undefined ? sql`true` : sql`organization_id = ${organization}`}
      and ${id === undefined ? sql`true` : sql`id = ${id}`}
      and ${place === undefined ? sql`true` : sql`(organization_id, id) > (${place[1]}, ${place[2]})`}
    order by organization_id, id limit ${sql.literal(`${pageSize + 1}`)}`.unprepared
}

const keyColumns = "left(name, 400) as name, prefix, last_used_on::text, "

/** Dead tasks that the page replays at once: more take longer than a page may. */
export const mostReplayed = 1000

/** Transactions that have written, in all databases of the cluster, without their statements, which may hold anything. */
const holders = `
  select pid, prepared, database, "user", application, state, ${isoTime("since")} from (
    (
      select pid, null as prepared, datname::text as database, usename::text as "user", application_name as application,
        state, xact_start as since
      from pg_stat_activity where backend_xid is not null order by age(backend_xid) desc limit 20
    )
    union all
    (
      select null, gid, database::text, owner::text, null, 'prepared', prepared
      from pg_prepared_xacts order by prepared limit 20
    )
  ) open`

const entriesAfter = (sql: Database, after: Tasks.Place | undefined) =>
  Commands.entries(
    sql,
    after === undefined
      ? sql`true`
      : sql`a.at <= ${after[0]}::timestamptz and (a.at, a.id) < (${after[0]}::timestamptz, ${after[2]}::uuid)`,
    pageSize + 1
  )

const unsure = (store: string) => () => `The ${store} store did not answer. Look again: it may be done.`

const make = Effect.gen(function* () {
  const [sql, credentials, records] = [yield* TaskDatabase, yield* CredentialDatabase, yield* RecordDatabase]
  const ofTasks = runner(TaskDatabase, sql, "task")
  const ofKeys = runner(CredentialDatabase, credentials, "credential")
  const changeTasks = <A>(change: Effect.Effect<A, SqlError, TaskDatabase>) => ofTasks(change, unsure("task"))
  const changeKeys = <A>(change: Effect.Effect<A, SqlError, CredentialDatabase>) => ofKeys(change, unsure("credential"))

  return {
    taskCounts: ofTasks(Tasks.counts(sql)),
    /** A page of tasks, the latest first. An `after` that is no place is ignored. */
    tasks: (filter: Tasks.TaskFilter, after: string | undefined): Effect.Effect<Page<Tasks.Task>, Problem> =>
      Effect.map(ofTasks(Tasks.page(filter, pageSize + 1, placeOf(after))), paged),
    /** Finds tasks by their id or the Idempotency-Key of their delivery, at most a page. */
    findTasks: (text: string, organization: string | undefined): Effect.Effect<Page<Tasks.Task>, Problem> =>
      Effect.map(ofTasks(Tasks.find(text, organization, pageSize)), (rows) => ({ rows, next: undefined })),
    task: (organization: string, id: string) =>
      Effect.flatMap(
        ofTasks(Tasks.shown(organization, id)),
        Effect.fromOption(() => new Problem({ status: 404, message: "No deletion of this organization has this id." }))
      ),
    /** The latest entries of the audit log about a key, a secret or a task. */
    history: (organization: string, target: string): Effect.Effect<ReadonlyArray<Commands.Entry>, Problem> =>
      ofTasks(Commands.entries(sql, sql`a.organization_id = ${organization} and a.target = ${target}`, pageSize)),
    keys: (filter: CredentialFilter, after: string | undefined): Effect.Effect<Page<ApiKey>, Problem> =>
      Effect.map(ofKeys(keyRows(credentialPage(credentials, "api_keys", keyColumns, filter, after))), paged),
    secrets: (filter: CredentialFilter, after: string | undefined): Effect.Effect<Page<IntakeSecret>, Problem> =>
      Effect.map(ofTasks(secretRows(credentialPage(sql, "intake_secrets", "", filter, after))), paged),
    /** The audit log, newest first. Changes of API keys are logged in the database of the keys. */
    audit: (after: string | undefined): Effect.Effect<Page<Commands.Entry>, Problem> => {
      const place = placeOf(after)
      const reads = [
        ofTasks(entriesAfter(sql, place)),
        ...(isSameDatabase(sql, credentials) ? [] : [ofKeys(entriesAfter(credentials, place))])
      ]
      return Effect.map(Effect.all(reads, { concurrency: 2 }), (found) => paged(Commands.latestFirst(found.flat())))
    },
    /** The transactions that hold changes back, oldest first. */
    holders: runner(RecordDatabase, records, "record")(rowsOf(Transaction)(records.unsafe(holders))),
    countDead: (filter: Tasks.DeadFilter) => ofTasks(Tasks.countDead(filter)),
    // Changes are logged.
    replay: (actor: Commands.Actor, organization: string, id: string) =>
      changeTasks(Commands.replayTask(actor, { id, organization })),
    replayDead: (actor: Commands.Actor, filter: Tasks.DeadFilter) =>
      changeTasks(Commands.replayDead(actor, filter, mostReplayed)),
    createKey: (actor: Commands.Actor, options: Parameters<typeof Commands.createKey>[1]) =>
      Effect.map(changeKeys(Commands.createKey(actor, options)), ({ id, key: secret }) => ({ id, secret })),
    revokeKey: (actor: Commands.Actor, id: string) => changeKeys(Commands.revokeKey(actor, id)),
    addSecret: (actor: Commands.Actor, organization: string) => changeTasks(Commands.addSecret(actor, organization)),
    revokeSecret: (actor: Commands.Actor, id: string) => changeTasks(Commands.revokeSecret(actor, id))
  }
})

export class OperatorStore extends Context.Service<OperatorStore, Effect.Success<typeof make>>()(
  "practice-data/operations/OperatorStore"
) {
  static readonly layer = Layer.effect(OperatorStore, make)
}
