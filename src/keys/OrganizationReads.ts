/**
 * Reads for the organization of a request. Its id is `$1` of each statement. Where the API key of the request is not
 * looked up yet, the statement looks it up on its way, for which a single record costs 25 to 35 % less CPU time. Nobody
 * else knows of that: handlers and repositories read for `CurrentOrganization`.
 */
import { Cause, Data, Duration, Effect, Redacted } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import { type CredentialStoreDown, RecordStoreDown, type Unauthorized } from "../api/Errors.ts"
import { type Database, isSameDatabase } from "../database/Database.ts"
import { retryOvertaken } from "../database/SqlFailure.ts"
import { note } from "../observability/RequestFacts.ts"
import {
  digestBytes,
  digestOf,
  type KeyRow,
  keyStatement,
  organizationOf,
  type OrgResolver,
  shareOf
} from "./OrgResolver.ts"

/** A statement that reads up to `limit` rows of an organization. */
export interface Query<Row> {
  /** The SQL. The id of the organization is `$1`, as often as it stands there; `values` follow from `$2` on. */
  readonly text: string
  readonly values: ReadonlyArray<unknown>
  readonly columns: ReadonlyArray<string & keyof Row>
  readonly limit: number
  /** True if the plan does not depend on the values, so that it is made once. */
  readonly isPlannedOnce: boolean
}

type KeyError = Unauthorized | CredentialStoreDown

/** The defect of a read whose key is not valid, or cannot be looked up: the errors of reads are those of records. */
class KeyFailed extends Data.Class<{ readonly error: KeyError }> {}

/** The organization of an API key that the first read looks up. Before that, its id is a defect. */
export class OrganizationOfKey {
  /** The SHA-256 of the key as text. */
  readonly digest: string
  readonly resolver: OrgResolver["Service"]
  // Redacted only where it leaves this object: V8 takes long to collect what a `Redacted` is kept in.
  readonly #key: string
  #id: string | undefined

  constructor(key: string, resolver: OrgResolver["Service"]) {
    this.digest = digestOf(key)
    this.resolver = resolver
    this.#key = key
  }

  get id(): string {
    if (this.#id === undefined) throw new Error("The API key of this request was not looked up yet")
    return this.#id
  }

  get isResolved(): boolean {
    return this.#id !== undefined
  }

  /** Takes the id that a statement has found. */
  resolveAs(id: string): Effect.Effect<string> {
    this.#id = id
    return Effect.as(note({ organization: id }), id)
  }

  /** Looks the key up, unless that was done before. */
  get resolve(): Effect.Effect<string, KeyError> {
    return Effect.suspend(() =>
      this.#id === undefined
        ? Effect.flatMap(this.resolver.resolve(Redacted.make(this.#key)), (id) => this.resolveAs(id))
        : Effect.succeed(this.#id)
    )
  }
}

/**
 * Runs a handler for the organization of a key, which its first read looks up; where no statement can, it is looked up
 * before. An invalid key gets no other error than 401: where a handler fails before it reads, the key is looked up then.
 *
 * @param needsId the handler needs the organization before it reads
 */
export const resolveByRead = <A, E, R>(
  organization: OrganizationOfKey,
  handler: Effect.Effect<A, E, R>,
  needsId = false
): Effect.Effect<A, E | KeyError, Exclude<R, CurrentOrganization>> => {
  const provided = Effect.provideService(handler, CurrentOrganization, organization)
  if (needsId || organization.resolver.database === undefined) return Effect.andThen(organization.resolve, provided)
  return Effect.catchCause(provided, (cause) => {
    const failure = Cause.squash(cause)
    if (failure instanceof KeyFailed) return Effect.fail(failure.error)
    const isOver = organization.isResolved || Cause.hasInterruptsOnly(cause)
    return isOver ? Effect.failCause(cause) : Effect.andThen(organization.resolve, Effect.failCause(cause))
  })
}

/** Reads of more rows do not go over a shared connection, where they delay those behind them. */
export const largePage = 250

const within = Duration.seconds(8)

/** Limits and offsets are in the texts, so there can be any number of them. */
const maximumTexts = 500

/**
 * The text of a query for the hash of a key, which is `$1` then. Its first row is the key's, and has nulls for the columns
 * of the query, whose rows follow. For an invalid key there is no row.
 */
export const keyedText = ({
  columns,
  text
}: Pick<Query<unknown>, "text"> & { readonly columns: ReadonlyArray<string> }) => {
  const owned = text.replaceAll(/\$1(?!\d)/g, "k.organization_id")
  // A statement without its owner would read the rows of all.
  if (owned === text) throw new Error(`A statement does not name its organization: ${text}`)
  const nulls = columns.map((name) => `null as ${name}`).join(", ")
  const selected = columns.map((name) => `r.${name}`).join(", ")
  // Not a column of every row: each would cost as much as a tenth of the row.
  return `
    with k as materialized (${keyStatement})
    select k.key, ${nulls} from k
    union all
    select null, ${selected} from k cross join lateral (${owned}) r`
}

/** Reads for the current organization from the database of the records. */
export const make = (sql: Database) => {
  const keyedTexts = new Map<string, string>()
  const keyedTextOf = <Row>(query: Query<Row>) => {
    const known = keyedTexts.get(query.text)
    if (known !== undefined) return known
    if (keyedTexts.size >= maximumTexts) keyedTexts.clear()
    const text = keyedText(query)
    keyedTexts.set(query.text, text)
    return text
  }

  /** Runs the statement of a query, by default on a shared connection where it is short. */
  const run = <Row extends object>(
    { isPlannedOnce, limit, values: others }: Pick<Query<Row>, "isPlannedOnce" | "limit" | "values">,
    text: string,
    owner: string | Uint8Array,
    key: string
  ) => {
    const isSmall = limit <= largePage
    const values = [owner, ...others]
    const request = { key, within, unavailable: RecordStoreDown.from }
    const dedicated = () => {
      const statement = sql.unsafe<Row>(text, values)
      return retryOvertaken(isPlannedOnce ? statement : statement.unprepared)
    }
    return isPlannedOnce && isSmall ? sql.runShort(request, [text, values], dedicated) : sql.run(request, dedicated())
  }

  const readFor = <Row extends object>(query: Query<Row>, id: string) =>
    run<Row>(query, query.text, id, `organization ${id}`)

  /** True where keys are beside the records: not if these are distributed, since their statements need the id. */
  const isBeside = ({ database }: OrgResolver["Service"]) =>
    database !== undefined && isSameDatabase(sql, database) && sql.distribution.isDistributed() === false

  // In the background: until it is known, keys are looked up first.
  const learn = Effect.suspend(() =>
    sql.distribution.isDistributed() === undefined ? Effect.forkDetach(sql.distribution.refresh) : Effect.void
  )

  const failed = (error: KeyError) => Effect.die(new KeyFailed({ error }))

  /** Looks the key up first for large pages as well. */
  const readByKey = <Row extends object>(query: Query<Row>, organization: OrganizationOfKey) => {
    const resolve = Effect.catch(organization.resolve, failed)
    if (query.limit > largePage || !isBeside(organization.resolver)) {
      return Effect.andThen(
        learn,
        Effect.flatMap(resolve, (id) => readFor(query, id))
      )
    }
    const { digest } = organization
    // After a failure, `resolveByRead` looks the key up.
    const read = run<Row & KeyRow>(query, keyedTextOf(query), digestBytes(digest), shareOf(digest))
    return Effect.flatMap(read, ([row, ...rows]) =>
      Effect.matchEffect(organizationOf(sql, digest, row), {
        onFailure: failed,
        onSuccess: (id) => Effect.as(organization.resolveAs(id), rows)
      })
    )
  }

  return <Row extends object>(
    query: Query<Row>
  ): Effect.Effect<ReadonlyArray<Row>, RecordStoreDown, CurrentOrganization> =>
    Effect.flatMap(CurrentOrganization, (organization) =>
      organization instanceof OrganizationOfKey && !organization.isResolved
        ? readByKey(query, organization)
        : readFor(query, organization.id)
    )
}
