/** Reads records from Postgres. */
import { Duration, Effect, Exit } from "effect"
import { atMost, fair } from "../database/Admission.ts"
import type { RecordDatabase } from "../database/Database.ts"
import { RecordNotFound, RecordStoreDown, Unauthorized } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/CurrentOrganization.ts"
import { keyQuery, shareOf } from "../keys/OrgResolver.ts"
import { type Condition, conditionsOf } from "../api/records/Filter.ts"
import * as Instant from "../api/records/Instant.ts"
import type { Resource } from "../api/records/Resource.ts"
import type { Criteria, Page, Repository } from "./Repository.ts"

/** A statement that returns records, each a row with its JSON. */
export interface Query {
  /** The statement; `owner` is the SQL of the organization's id, which is `$1` or made of it. */
  readonly text: (owner: string) => string
  /** The values of `$2` and on. */
  readonly values: ReadonlyArray<unknown>
  /** How many records it returns at most. */
  readonly limit: number
  /** Whether the plan does not depend on the values, so that it is made once. */
  readonly isPlannedOnce: boolean
}

/**
 * The ways in which a condition can hold, each one a range of one index. Together they cover every row that satisfies
 * the condition, and no row twice.
 */
const ranges = (
  condition: Condition,
  orderedBy: string,
  bind: (value: unknown, type: string) => string
): ReadonlyArray<string> => {
  switch (condition._tag) {
    case "Equals": {
      const value = bind(condition.value, "text")
      return condition.columns.map((column, index) =>
        [
          `t.${column} = ${value}`,
          ...condition.columns.slice(0, index).map((earlier) => `t.${earlier} is distinct from t.${column}`)
        ].join(" and ")
      )
    }
    case "NumberEquals":
      return [`t.${condition.column} = ${bind(condition.value, "numeric")}`]
    case "AtLeast": {
      const value = bind(Instant.toPostgres(condition.value), "timestamptz")
      if (condition.column === orderedBy) return [`t.${orderedBy} >= ${value}`]
      // Nearly no row is changed before it is created, so the rows to return stand at the end of the order.
      const { column } = condition
      return [
        `t.${column} >= ${value} and t.${orderedBy} >= ${value}`,
        `t.${column} >= ${value} and t.${orderedBy} < ${value} and t.${orderedBy} < t.${column}`
      ]
    }
    case "Before":
      return [`t.${condition.column} < ${bind(Instant.toPostgres(condition.value), "timestamptz")}`]
    case "IsFalse":
      return [`not t.${condition.column}`]
    case "Never":
      return ["false"]
  }
}

const combinations = (sets: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<ReadonlyArray<string>> =>
  sets.reduce<ReadonlyArray<ReadonlyArray<string>>>(
    (combined, set) => combined.flatMap((chosen) => set.map((range) => [...chosen, range])),
    [[]]
  )

/** Whether one index is the best whatever the values: besides the order, it has to serve one exact value at most. */
const hasOneBestIndex = ({ orderedBy }: Resource, conditions: ReadonlyArray<Condition>) => {
  const others = conditions.filter(
    (condition) => condition._tag !== "IsFalse" && !(condition._tag === "AtLeast" && condition.column === orderedBy)
  )
  return others.length <= 1 && others.every(({ _tag }) => _tag === "Equals" || _tag === "NumberEquals")
}

/** The offset from which walking the index first is faster, measured (`npm run bench`). */
const deepOffset = 1500

/**
 * The query of a page. Where a filter has several ranges, each is read in order, and the results are merged. Limit and
 * offset are in the text, since a plan for any limit would sort the whole organization.
 *
 * @param deep the offset from which the records to skip are skipped in the index alone, and only the rows of the page
 *   are touched
 */
export const searchQuery = (resource: Resource, criteria: Criteria, page: Page, deep = deepOffset): Query => {
  const { limit, offset } = page
  const conditions = conditionsOf(resource.filters, criteria)
  const isPlannedOnce = offset === 0 && hasOneBestIndex(resource, conditions)
  const values: Array<unknown> = []
  // A value that the planner cannot see: it would else find a plan for the value cheaper, and make one every time.
  const hidden = (sql: string) => (isPlannedOnce ? `(select ${sql})` : sql)
  const bind = (value: unknown, type: string) => hidden(`$${values.push(value) + 1}::${type}`)
  const order = `t.${resource.orderedBy}, t.id`
  const branches = combinations(conditions.map((condition) => ranges(condition, resource.orderedBy, bind)))
  const isDeep = offset >= deep
  const columns = isDeep ? order : `t.record, ${order}`
  const limited = offset === 0 ? `limit ${limit}` : `limit ${limit} offset ${offset}`
  const select = (selected: string, owner: string, where: ReadonlyArray<string>, bounds: string) =>
    `select ${selected} from ${resource.table} t where ${[`t.organization_id = ${owner}`, ...where].join(" and ")} order by ${order} ${bounds}`
  const rows = (owner: string) => {
    const [first = []] = branches
    if (branches.length === 1) return select(isDeep ? columns : "t.record", owner, first, limited)
    const parts = branches.map((where) => `(${select(columns, owner, where, `limit ${limit + offset}`)})`)
    return `select ${isDeep ? order : "t.record"} from (${parts.join(" union all ")}) t order by ${order} ${limited}`
  }
  return {
    text: (owner) =>
      isDeep
        ? `select t.record from (${rows(owner)}) p join ${resource.table} t on t.organization_id = ${owner} and t.id = p.id order by ${order}`
        : rows(owner),
    values,
    limit,
    isPlannedOnce
  }
}

/** The query of a record. */
export const getQuery = (resource: Resource, id: string): Query => ({
  text: (owner) => `select t.record from ${resource.table} t where t.organization_id = ${owner} and t.id = $2`,
  values: [id],
  limit: 1,
  isPlannedOnce: true
})

/** The query, with a look-up of the key whose hash is `$1`: its first row is the key's, and has no record. */
export const withKey = (query: Query) =>
  `with k as materialized (${keyQuery})
   select null as record, organization_id, is_first_use_today from k
   union all select record, null, null from (${query.text("(select organization_id from k)")}) r`

const unavailable = RecordStoreDown.from

/**
 * Large pages keep this process busy, and not the database: more of them at once make nobody's answer come sooner, and
 * keep others waiting for theirs.
 */
const shareOfConnections = ({ limit }: Query) => (limit > 250 ? atMost(1) : fair)

/** How long a read may take. */
const within = Duration.seconds(8)

interface Found {
  readonly record: string
}

interface FoundWithKey {
  readonly record: string | null
  readonly organization_id: string | null
  readonly is_first_use_today: boolean | null
}

/**
 * A repository over the table of a resource.
 *
 * @param deep as in `searchQuery`
 */
export const make = <R extends Resource>(sql: RecordDatabase["Service"], resource: R, deep?: number): Repository<R> => {
  const statementOf = <A extends object>(query: Query, text: string, first: unknown) => {
    const statement = sql.unsafe<A>(text, [first, ...query.values])
    return query.isPlannedOnce ? statement : statement.unprepared
  }

  /** The JSON of the records that a query finds for the current organization. */
  const read = Effect.fnUntraced(function* (query: Query) {
    const { id, key } = yield* CurrentOrganization
    if (key === undefined) {
      const organization = yield* id
      const found = yield* sql.run(
        { key: `organization ${organization}`, share: shareOfConnections(query), within, unavailable },
        statementOf<Found>(query, query.text(query.isPlannedOnce ? "(select $1)" : "$1"), organization)
      )
      return found.map(({ record }) => record)
    }
    const found = yield* sql
      .run(
        // What keeps it waiting may be the keys, whose store has to answer sooner.
        {
          key: shareOf(key.hash),
          share: shareOfConnections(query),
          within,
          unavailable,
          check: { after: Duration.millis(150), effect: id }
        },
        statementOf<FoundWithKey>(query, withKey(query), key.hash)
      )
      .pipe(Effect.tapError((error) => key.settle(Exit.fail(error))))
    const records: Array<string> = []
    let organization: string | undefined
    for (const { record, organization_id, is_first_use_today } of found) {
      if (record !== null) records.push(record)
      else if (organization_id !== null) {
        organization = organization_id
        yield* key.settle(Exit.succeed(organization_id), is_first_use_today === true)
      }
    }
    if (organization === undefined) {
      yield* key.settle(Exit.fail(new Unauthorized()))
      return yield* new Unauthorized()
    }
    return records
  })

  return {
    resource,
    search: Effect.fn("Records.search", { attributes: { table: resource.table } })(function* (criteria, page) {
      const records = yield* read(searchQuery(resource, criteria, page, deep))
      return `{"body":[${records.join(",")}]}`
    }),
    get: Effect.fn("Records.get", { attributes: { table: resource.table } })(function* (id) {
      const [record] = yield* read(getQuery(resource, id))
      return record ?? (yield* new RecordNotFound())
    })
  }
}
