/** What the operators' page reads from the tables, and changes in them. */
import { Duration, Effect, Option, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import { join } from "effect/sql/Statement"
import * as Uuid from "uuid"
import { State } from "../api/DeletionTasks.ts"
import {
  CredentialDatabase,
  type Database,
  isSameDatabase,
  RecordDatabase,
  TaskDatabase
} from "../database/Database.ts"
import { codeOf } from "../database/SqlFailure.ts"
import * as Store from "../database/Store.ts"
import { isoTime } from "../database/Time.ts"
import { taskIdOf } from "../deletions/Delivery.ts"
import { ApiKey } from "../keys/ApiKeys.ts"
import { type Actor, columns as entryColumns, Entry, latestFirst } from "./AuditLog.ts"
import * as Commands from "./Commands.ts"
import {
  ListedTask,
  mostCounted,
  mostItems,
  mostOrganizations,
  pageSize,
  ShownTask,
  TaskCounts,
  type TaskFilter,
  Transaction,
  Unreadable
} from "./OperatorRows.ts"

/** A page is there within two seconds, whatever a database does. */
const within = Duration.millis(1500)

const undefinedTable = "42P01"
const undefinedColumn = "42703"

/** What a refusal of the database itself means. */
const refused = (store: string, error: SqlError): Effect.Effect<never, SqlError | Unreadable> => {
  if (error.reason._tag === "AuthorizationError")
    return Effect.fail(new Unreadable({ message: `The database role of this process may not do this in the ${store}` }))
  if ([undefinedTable, undefinedColumn].includes(codeOf(error)))
    return Effect.fail(new Unreadable({ message: `The ${store} lacks migrations` }))
  return Effect.fail(error)
}

const unavailable = (store: string) => (failure: Store.Failure) =>
  new Unreadable({ message: `The ${store} ${Store.describe(failure)}` })

/** Runs statements in their turn and in time, and decodes their rows. A row that does not decode is a bug. */
const reading =
  (database: Database, store: string) =>
  <A, I>(schema: Schema.Codec<A, I>, statements: Effect.Effect<ReadonlyArray<unknown>, SqlError>) => {
    const decode = Schema.decodeUnknownEffect(Schema.Array(schema))
    return database
      .run(
        { key: "operators", within, unavailable: unavailable(store) },
        Effect.catchTag(statements, "SqlError", (error) => refused(store, error))
      )
      .pipe(
        Effect.flatMap((rows) => decode(rows)),
        Effect.catchTag("SchemaError", Effect.die)
      )
  }

/** Where a page ended: the time, organization and id of its last row. */
const Place = Schema.fromJsonString(Schema.Tuple([Schema.String, Schema.String, Schema.String]))
type Place = typeof Place.Type

const isTime = (text: string) => /^\d{4,6}-\d\d-\d\d \d\d:\d\d:\d\d[\d.:+-]*( BC)?$|^$/.test(text)

/** The place that a text names; undefined where it names none. */
export const placeOf = (text: string | undefined): Place | undefined => {
  if (text === undefined || text.length > 2000) return undefined
  const place = Schema.decodeOption(Place)(Buffer.from(text, "base64url").toString())
  return Option.getOrUndefined(
    Option.filter(
      place,
      ([time, organization, id]) => isTime(time) && !organization.includes("\0") && !id.includes("\0")
    )
  )
}

const textOf = (place: Place) => Buffer.from(JSON.stringify(place)).toString("base64url")

/** Rows with their place: a page, and where to go on. */
const paged = <Row extends object>(
  found: ReadonlyArray<Row & { readonly position: string; readonly organization_id: string; readonly id: string }>
) => {
  const rows = found.slice(0, pageSize)
  const last = rows.at(-1)
  return {
    rows,
    next:
      found.length > pageSize && last !== undefined ? textOf([last.position, last.organization_id, last.id]) : undefined
  }
}

const WithPosition = { position: Schema.String }
const PlacedTask = Schema.Struct({ ...ListedTask.fields, ...WithPosition })
const PlacedKey = Schema.Struct({ ...ApiKey.fields, ...WithPosition })
const PlacedEntry = Schema.Struct({ ...Entry.fields, ...WithPosition })

const taskTimes = ["t.received_at", "t.scheduled_for", "t.due_at", "t.finished_at"].map(isoTime).join(", ")
const taskColumns = `t.organization_id, t.id, t.idempotency_key, t.state, ${taskTimes}, t.attempts,
  left(t.last_error, 4000) as last_error, t.outcome`

/**
 * Organizations that have tasks, at most so many: those with a row in `organizations` come first, since an unsigned
 * delivery can name any other. Each is looked up in a primary key.
 */
const knownOrganizations = (most: number) => `
  with recursive named as (
    (select organization_id from deletion_tasks order by organization_id limit 1)
    union all
    select (
      select t.organization_id from deletion_tasks t
      where t.organization_id > named.organization_id order by t.organization_id limit 1
    )
    from named where named.organization_id is not null
  )
  select organization_id from (
    (
      select o.organization_id, true as is_registered from organizations o
      where exists (select from deletion_tasks t where t.organization_id = o.organization_id)
      order by o.organization_id limit ${most}
    )
    union all
    (
      select n.organization_id, false from named n
      where n.organization_id is not null
        and not exists (select from organizations o where o.organization_id = n.organization_id) limit ${most}
    )
  ) known
  order by is_registered desc, organization_id limit ${most}`

/** The same where the tables are distributed: all are read, since no server knows those of the others. */
const knownOnAllServers = (most: number) => `
  select t.organization_id from (select distinct organization_id from deletion_tasks) t
  left join organizations o on o.organization_id = t.organization_id
  order by o.organization_id is null, t.organization_id limit ${most}`

const counted = (state: State, order: string) =>
  `(select count(*)::integer as tasks from (
     select 1 from deletion_tasks where state = '${state}' order by ${order} limit ${mostCounted + 1}
   ) t) ${state}`

const oldest = (state: State) =>
  `(select min(due_at) as due_at from deletion_tasks where state = '${state}') oldest_${state}`

/** Counted in the partial index of each state. */
const counts = (estimated: string) => `
  select t.scheduled, t.running, t.dead, ${isoTime("t.oldest_due_at")}, ${estimated} as estimated from (
    select scheduled.tasks as scheduled, running.tasks as running, dead.tasks as dead,
      least(oldest_scheduled.due_at, oldest_running.due_at) as oldest_due_at
    from ${counted("scheduled", "due_at")} cross join ${counted("running", "due_at")}
    cross join ${counted("dead", "finished_at, organization_id, id")}
    cross join ${oldest("scheduled")} cross join ${oldest("running")}
  ) t`

const estimate = "(select nullif(reltuples, -1)::float8 from pg_class where oid = 'deletion_tasks'::regclass)"

const someItems = (list: string, fields: ReadonlyArray<string>) =>
  `(select coalesce(json_agg(json_build_object(${fields
    .map((field) => `'${field}', left(item->>'${field}', 200)`)
    .join(", ")})), '[]') from (
      select item from jsonb_array_elements(t.payload->'${list}') with ordinality as items(item, place)
      order by place limit ${mostItems}
    ) named) as ${list}`

const shownColumns = `${taskColumns}, ${isoTime("t.started_at")}, t.invoices_count, t.invoice_lines_count, t.trace_parent,
  ${someItems("invoices", ["invoice_id", "clinic_id", "client_id"])},
  ${someItems("invoice_lines", ["invoice_line_id", "invoice_id", "clinic_id"])}`

const unionAll = join(" union all ", false)

/** Transactions that have written, of all databases of the cluster, without what they run, which may hold anything. */
const holders = `
  select pid, null as prepared, datname::text as database, usename::text as user, application_name as application, state,
    ${isoTime("xact_start").replace(/ as \w+$/, " as since")}
  from (
    select * from pg_stat_activity where backend_xid is not null order by age(backend_xid) desc limit 20
  ) active
  union all
  select null, gid, database::text, owner::text, null, 'prepared',
    ${isoTime("prepared").replace(/ as \w+$/, " as since")}
  from (select * from pg_prepared_xacts order by prepared limit 20) waiting`

/** The store, over the databases. */
export const make = Effect.gen(function* () {
  const sql = yield* TaskDatabase
  const credentials = yield* CredentialDatabase
  const records = yield* RecordDatabase
  const readTasks = reading(sql, "task store")
  const readKeys = reading(credentials, "credential store")

  const isDistributed = Effect.map(sql.distribution.refresh, () => sql.distribution.isDistributed() === true)

  const organizations = Effect.flatMap(isDistributed, (isApart) =>
    readTasks(
      Schema.Struct({ organization_id: Schema.String }),
      sql.unsafe((isApart ? knownOnAllServers : knownOrganizations)(mostOrganizations + 1))
    )
  )

  /** Those of a state of all organizations, in the order of the partial index of that state. */
  const ofState = (state: "scheduled" | "running" | "dead", place: Place | undefined) => {
    const [column, order, beyond] =
      state === "dead" ? (["finished_at", "desc", "<"] as const) : (["due_at", "asc", ">"] as const)
    const time = sql.literal(`t.${column}`)
    const after =
      place === undefined
        ? sql`true`
        : sql`${time} ${sql.literal(beyond)}= ${place[0]}::timestamptz
            and (${time}, t.organization_id, t.id) ${sql.literal(beyond)} (${place[0]}::timestamptz, ${place[1]}, ${place[2]}::uuid)`
    return sql`
      select ${sql.literal(taskColumns)}, ${time}::text as position from deletion_tasks t
      where t.state = ${sql.literal(`'${state}'`)} and ${after}
      order by ${time} ${sql.literal(order)}, t.organization_id ${sql.literal(order)}, t.id ${sql.literal(order)}
      limit ${sql.literal(String(pageSize + 1))}`.unprepared
  }

  const isAfterLatest = (place: Place | undefined) =>
    place === undefined
      ? sql`true`
      : sql`t.scheduled_for <= ${place[0]}::timestamptz
          and (t.scheduled_for, t.organization_id, t.id) < (${place[0]}::timestamptz, ${place[1]}, ${place[2]}::uuid)`

  /** The latest of all organizations, from all servers: no index has them in this order. */
  const latestOfServers = (states: ReadonlyArray<State>, place: Place | undefined) =>
    sql`
    select ${sql.literal(taskColumns)}, t.scheduled_for::text as position from deletion_tasks t
    where t.state = any (${states}::text[]) and ${isAfterLatest(place)}
    order by t.scheduled_for desc, t.organization_id desc, t.id desc limit ${sql.literal(String(pageSize + 1))}`
      .unprepared

  /** The latest of each state of each organization, merged: found in the index that the organization leads. */
  const latest = (organization: string | undefined, states: ReadonlyArray<State>, place: Place | undefined) => {
    const after = isAfterLatest(place)
    const from =
      organization === undefined ? sql`(${sql.literal(knownOrganizations(mostOrganizations))}) o` : sql`(select 1) o`
    const ownerIn = (alias: string) =>
      organization === undefined ? sql.literal(`${alias}.organization_id`) : sql`${organization}`
    const limit = sql.literal(`limit ${pageSize + 1}`)
    const parts = states.map(
      (state) => sql`(
        select t.organization_id, t.id, t.scheduled_for from deletion_tasks t
        where t.organization_id = ${ownerIn("o")} and t.state = ${sql.literal(`'${state}'`)} and ${after}
        order by t.scheduled_for desc, t.id desc ${limit}
      )`
    )
    return sql`
      select t.* from (
        select found.* from ${from} cross join lateral (${unionAll(parts)}) found
        order by found.scheduled_for desc, found.organization_id desc, found.id desc ${limit}
      ) p
      cross join lateral (
        select ${sql.literal(taskColumns)}, t.scheduled_for::text as position from deletion_tasks t
        where t.organization_id = ${ownerIn("p")} and t.id = p.id limit 1
      ) t
      order by p.scheduled_for desc, p.organization_id desc, p.id desc`.unprepared
  }

  const tasks = Effect.fn("OperatorStore.tasks")(function* (
    { organization, state }: TaskFilter,
    after: string | undefined
  ) {
    const place = placeOf(after)
    const valid = place !== undefined && Uuid.validate(place[2]) && place[0] !== "" ? place : undefined
    if (organization === undefined && state !== undefined && state !== "completed") {
      return { ...paged(yield* readTasks(PlacedTask, ofState(state, valid))), isPartial: false }
    }
    const states = state === undefined ? State.literals : [state]
    if (organization === undefined && (yield* isDistributed)) {
      return { ...paged(yield* readTasks(PlacedTask, latestOfServers(states, valid))), isPartial: false }
    }
    const found = yield* readTasks(PlacedTask, latest(organization, states, valid))
    const isPartial = organization === undefined && (yield* organizations).length > mostOrganizations
    return { ...paged(found), isPartial }
  })

  const findTasks = Effect.fn("OperatorStore.findTasks")(function* (text: string, organization: string | undefined) {
    const known =
      organization === undefined ? (yield* organizations).map(({ organization_id }) => organization_id) : [organization]
    const looked = known.slice(0, mostOrganizations)
    const pairs = looked.flatMap((owner) => [
      { owner, id: taskIdOf(owner, text) },
      ...(Uuid.validate(text) ? [{ owner, id: text }] : [])
    ])
    // Looked up one by one, in the primary key; of one organization, on its server.
    const found = yield* readTasks(
      PlacedTask,
      organization === undefined && (yield* isDistributed)
        ? sql`
        select ${sql.literal(taskColumns)}, '' as position
        from jsonb_to_recordset(${sql.json(pairs)}::jsonb) as p (owner text, id uuid)
        join deletion_tasks t on t.organization_id = p.owner collate "C" and t.id = p.id
        limit ${sql.literal(String(pageSize))}`.unprepared
        : organization !== undefined
          ? sql`
        select ${sql.literal(taskColumns)}, '' as position from deletion_tasks t
        where t.organization_id = ${organization} and t.id = any (${pairs.map(({ id }) => id)}::uuid[])
        limit ${sql.literal(String(pageSize))}`
          : sql`
        select t.* from jsonb_to_recordset(${sql.json(pairs)}::jsonb) as p (owner text, id uuid)
        cross join lateral (
          select ${sql.literal(taskColumns)}, '' as position from deletion_tasks t
          where t.organization_id = p.owner collate "C" and t.id = p.id limit 1
        ) t
        limit ${sql.literal(String(pageSize))}`.unprepared
    )
    return { ...paged(found), isPartial: known.length > mostOrganizations }
  })

  const entriesOf = (database: Database, store: string, after: Place | undefined) =>
    reading(database, store)(
      PlacedEntry,
      database`
        select ${database.literal(entryColumns)}, a.at::text as position from audit_log a
        where ${
          after === undefined
            ? database`true`
            : database`a.at <= ${after[0]}::timestamptz and (a.at, a.id) < (${after[0]}::timestamptz, ${after[2]}::uuid)`
        }
        order by a.at desc, a.id desc limit ${database.literal(String(pageSize + 1))}`.unprepared
    )

  return {
    taskCounts: isDistributed.pipe(
      // Only of one server's own tables it is known how many rows they have, more or less.
      Effect.flatMap((isApart) => readTasks(TaskCounts, sql.unsafe(counts(isApart ? "null::float8" : estimate)))),
      Effect.flatMap(([found]) =>
        found === undefined ? Effect.die(new Error("Counts are one row")) : Effect.succeed(found)
      )
    ),
    tasks,
    findTasks,
    task: (organization: string, id: string) =>
      Uuid.validate(id)
        ? Effect.map(
            readTasks(
              ShownTask,
              sql`
                select ${sql.literal(shownColumns)} from deletion_tasks t
                where t.organization_id = ${organization} and t.id = ${id}`
            ),
            ([task]) => Option.fromNullishOr(task)
          )
        : Effect.succeedNone,
    history: (organization: string, target: string) =>
      readTasks(
        Entry,
        sql`
          select ${sql.literal(entryColumns)} from audit_log a
          where a.organization_id = ${organization} and a.target = ${target}
          order by a.at desc limit ${sql.literal(String(pageSize))}`
      ),
    keys: Effect.fn("OperatorStore.keys")(function* (organization: string | undefined, after: string | undefined) {
      const place = placeOf(after)
      const found = yield* readKeys(
        PlacedKey,
        credentials`
          select organization_id, id, left(name, 400) as name, prefix, last_used_on::text,
            ${credentials.literal(["created_at", "revoked_at"].map(isoTime).join(", "))}, '' as position
          from api_keys k
          where ${organization === undefined ? credentials`true` : credentials`k.organization_id = ${organization}`}
            and ${
              place === undefined
                ? credentials`true`
                : credentials`(k.organization_id, k.id) > (${place[1]}, ${place[2]})`
            }
          order by k.organization_id, k.id limit ${credentials.literal(String(pageSize + 1))}`.unprepared
      )
      return paged(found)
    }),
    audit: Effect.fn("OperatorStore.audit")(function* (after: string | undefined) {
      const place = placeOf(after)
      const valid = place !== undefined && Uuid.validate(place[2]) && place[0] !== "" ? place : undefined
      const ofTasks = entriesOf(sql, "task store", valid)
      if (isSameDatabase(sql, credentials)) return paged(yield* ofTasks)
      // Changes of API keys are written down where the keys are.
      const all = yield* Effect.all([ofTasks, entriesOf(credentials, "credential store", valid)], { concurrency: 2 })
      return paged(latestFirst(all.flat()))
    }),
    holders: reading(records, "record store")(Transaction, records.unsafe(holders)),
    replay: (actor: Actor, organization: string, id: string) =>
      sql.run(
        {
          key: "operators",
          within,
          unavailable: () =>
            new Unreadable({ message: "The task store did not answer. Look at the deletion again: it may be replayed" })
        },
        Commands.replayTask(actor, { id, organization }).pipe(
          Effect.provideService(TaskDatabase, sql),
          Effect.catchTags({ SchemaError: Effect.die, SqlError: (error) => refused("task store", error) })
        )
      )
  }
})
