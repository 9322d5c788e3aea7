/**
 * Reads for the organization of a request. Its id is known, or the statement that reads looks the API key up on its way,
 * for which a single record costs 25 to 35 % less CPU time. Readers write a query for an owner, the SQL of an
 * organization's id, and do not know which way it is found.
 */
import { Array, Context, Duration, Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Constructor, Fragment, Statement } from "effect/sql/Statement"
import { CurrentOrganization } from "../api/Authorization.ts"
import { CredentialStoreDown, RecordStoreDown, type Unauthorized } from "../api/Errors.ts"
import { atMost, fair } from "../database/Admission.ts"
import type { Database } from "../database/Database.ts"
import type * as Store from "../database/Store.ts"
import { retryOvertaken } from "../database/SqlFailure.ts"
import { note } from "../observability/RequestFacts.ts"
import { keyRow, organizationOf, shareOf, unauthorized } from "./OrgResolver.ts"

type LookUp = (keyHash: Uint8Array) => Effect.Effect<string, Unauthorized | CredentialStoreDown>

/** An API key, by its hash, that is looked up by the first statement that needs its organization. */
export class UnresolvedKey {
  /** True once a statement or `resolve` looks the key up. */
  isUsed = false
  readonly keyHash: Uint8Array
  readonly #lookUp: LookUp

  constructor(keyHash: Uint8Array, lookUp: LookUp) {
    this.keyHash = keyHash
    this.#lookUp = lookUp
  }

  get resolve() {
    this.isUsed = true
    return this.#lookUp(this.keyHash)
  }
}

/** A statement that reads records. */
export interface Query<Row> {
  readonly statement: Statement<Row>
  readonly columns: ReadonlyArray<string & keyof Row>
  /** True if the plan does not depend on the values, so that it is made once. */
  readonly isPlannedOnce: boolean
}

/** A query by its shape: of two that have the same shape, only the values differ. */
export interface Shaped {
  readonly shape: string
  readonly values: ReadonlyArray<string>
}

/** A read of up to `limit` rows. */
interface Read<Row> extends Shaped {
  readonly limit: number
  readonly queryOf: (owner: Fragment, values: ReadonlyArray<string>) => Query<Row>
}

/**
 * Large pages keep this process busy, not the database: in parallel they are no faster, and delay the reads of other
 * organizations. So each organization has one at a time, and none on a shared connection.
 */
export const largePage = 250

const one = atMost(1)
const within = Duration.seconds(8)

/** The owner of a query that is run `withKey`. */
export const ownerOfKey = "k.organization_id"

/**
 * The statement of a query, with a look-up of the key whose organization is its owner. Its first row is the key's, and
 * has nulls for the columns of the query, whose rows follow. For an invalid key there is no row.
 */
export const withKey = <Row extends object>(
  sql: Constructor,
  keyHash: Uint8Array | string,
  { columns, statement }: Pick<Query<Row>, "columns" | "statement">
) => {
  const nulls = sql.literal(columns.map((name) => `null as ${name}`).join(", "))
  const found = sql.literal(columns.map((name) => `r.${name}`).join(", "))
  // Not a column of every row: each would cost as much as a tenth of the row.
  return sql<Row>`
  with k as materialized (${keyRow(sql, keyHash)})
  select k.key, ${nulls} from k
  union all
  select null, ${found} from k cross join lateral (${statement}) r`
}

/** A statement with its values, as it is sent. */
interface Made extends Pick<Query<unknown>, "isPlannedOnce"> {
  readonly query: Store.Query
}

/** Makes a statement from its values. It has no others, and leaves these as they are. */
export type Make = (values: ReadonlyArray<string>) => Made

/** Limits and offsets are in the texts, so there can be any number of them. */
const maximumTexts = 500

/**
 * Keeps the texts of statements that have a shape: those of one shape differ in their values alone. Making a text costs
 * as much as sending it.
 */
export const makeTemplates = () => {
  const templates = new Map<string, Pick<Made, "isPlannedOnce"> & { text: string; places: ReadonlyArray<number> }>()

  const templateOf = (shape: string, count: number, make: Make) => {
    if (templates.size >= maximumTexts) templates.clear()
    const placeholders = Array.makeBy(count, (index) => `\0${index}`)
    const { isPlannedOnce, query } = make(placeholders)
    const [text, made] = query
    const template = { isPlannedOnce, text, places: made.map((value) => placeholders.indexOf(String(value))) }
    templates.set(shape, template)
    return template
  }

  return (shape: string, values: ReadonlyArray<unknown>, make: Make): Made => {
    const { isPlannedOnce, places, text } = templates.get(shape) ?? templateOf(shape, values.length, make)
    return { isPlannedOnce, query: [text, places.map((place) => values[place])] }
  }
}

/** Reads for the current organization from the database of the records. */
export const make = (sql: Database) => {
  const keyOwner = sql.literal(ownerOfKey)
  const templates = makeTemplates()

  /** After a statement that waited for a lock too long: finds out whether it is the keys that are locked. */
  const lookUpAlone = (keyHash: Uint8Array) => (error: SqlError) =>
    error.reason._tag === "LockTimeoutError"
      ? keyRow(sql, keyHash).pipe(
          Effect.mapError(() => new CredentialStoreDown({ detail: "The credential store is busy" })),
          Effect.filterOrFail(Array.isReadonlyArrayNonEmpty, () => unauthorized)
        )
      : Effect.void

  /** Reads for the id of an organization, or for the hash of a key, whose own row comes first. */
  const run = <Row extends object>(read: Read<Row>, key: string, owner: string | Uint8Array) => {
    const isKnown = typeof owner === "string"
    const statementOf: Make = ([given = "", ...values]) => {
      const query = read.queryOf(isKnown ? sql`${given}` : keyOwner, values)
      const statement = isKnown ? query.statement : withKey(sql, given, query)
      return { query: statement.compile(), isPlannedOnce: query.isPlannedOnce }
    }
    const { isPlannedOnce, query } = templates(`${isKnown} ${read.shape}`, [owner, ...read.values], statementOf)
    const isShort = read.limit <= largePage
    const request = { key, share: isShort ? fair : one, within, unavailable: RecordStoreDown.from }
    const alone = () => {
      const statement = sql.unsafe<Row>(...query)
      const rows = retryOvertaken(isPlannedOnce ? statement : statement.unprepared)
      return typeof owner === "string" ? rows : Effect.tapErrorTag(rows, "SqlError", lookUpAlone(owner))
    }
    return isPlannedOnce && isShort ? sql.runShort(request, query, alone) : sql.run(request, alone())
  }

  const readByKey = <Row extends object>(read: Read<Row>, key: UnresolvedKey) => {
    const { keyHash } = key
    key.isUsed = true
    return Effect.flatMap(run(read, shareOf(keyHash), keyHash), ([row, ...rows]) =>
      Effect.flatMapEager(organizationOf(sql, keyHash, row), (organization) => Effect.as(note({ organization }), rows))
    )
  }

  const readKnown = <Row extends object>(read: Read<Row>, id: string) => run(read, `organization ${id}`, id)

  return <Row extends object>(read: Read<Row>) =>
    Effect.contextWith(
      (
        context: Context.Context<CurrentOrganization>
      ): Effect.Effect<ReadonlyArray<Row>, RecordStoreDown | Unauthorized | CredentialStoreDown> => {
        const organization = Context.get(context, CurrentOrganization)
        if ("id" in organization) return readKnown(read, organization.id)
        return organization instanceof UnresolvedKey
          ? readByKey(read, organization)
          : Effect.flatMap(organization.resolve, (id) => readKnown(read, id))
      }
    )
}
