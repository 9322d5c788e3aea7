/**
 * Reads whose statement looks up the API key on its way, for which a single record costs 25 to 35 % less CPU time. Where
 * that cannot be, the key is looked up first.
 */
import { Context, Effect, Predicate, Redacted } from "effect"
import { CurrentOrganization } from "../api/Authorization.ts"
import type { CredentialStoreDown, RecordStoreDown, Unauthorized } from "../api/Errors.ts"
import { CredentialDatabase, type Database, isSameDatabase } from "../database/Database.ts"
import * as OrganizationReads from "../database/OrganizationReads.ts"
import { digestBytes, type KeyRow, keyStatement, resolveRow, OrgResolver } from "../keys/OrgResolver.ts"
import { note } from "../observability/RequestFacts.ts"
import * as Pipeline from "./Pipeline.ts"

/** The API key of a request, and its SHA-256 as text. */
export class PresentedKey extends Context.Service<
  PresentedKey,
  {
    // Redacted only where it leaves the lane: the map behind `Redacted` is slow to collect.
    readonly key: string
    readonly digest: string
  }
>()("practice-data/lane/KeyedReads/PresentedKey") {}

export type KeyError = Unauthorized | CredentialStoreDown

/** Finds the organization of an API key, by the key and its digest. */
export type LookUp = (key: string, digest: string) => Effect.Effect<string, KeyError>

/** Longer pages delay the answers behind them, and a look-up costs little beside them. */
const longestPage = 250

/** Limits and offsets are in the texts, so there can be any number of them. */
const maximumTexts = 500

/**
 * The text of a query for the hash of a key, which is `$1` then. Its first row is the key's, and has nulls for the columns
 * of the query, whose rows follow. For an invalid key there is no row.
 */
export const keyedText = ({
  columns,
  text
}: Pick<OrganizationReads.Query<object>, "text"> & { readonly columns: ReadonlyArray<string> }) => {
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

/** The texts of queries for the hash of a key, which are kept. */
const makeTexts = () => {
  const known = new Map<string, string>()
  return <Row>(query: OrganizationReads.Query<Row>) => {
    const found = known.get(query.text)
    if (found !== undefined) return found
    if (known.size >= maximumTexts) known.clear()
    const text = keyedText(query)
    known.set(query.text, text)
    return text
  }
}

/** Reads for the key of the request, and look-ups of keys, from a database of the records. */
export const make = Effect.fnUntraced(function* (sql: Database) {
  const keys = yield* CredentialDatabase
  const resolver = yield* OrgResolver
  const short = yield* Pipeline.make(sql)
  const plain = OrganizationReads.make(sql)
  const keyedTextFor = makeTexts()

  /** True where keys are beside the records: not if these are distributed, since their statements need the id. */
  const isBeside = () => isSameDatabase(sql, keys) && sql.distribution.isDistributed() === false

  /** The rows of a query, whose statement looks up the key too. */
  const readByKey = <Row extends object>(query: OrganizationReads.Query<Row>, digest: string) => {
    const hash = digestBytes(digest)
    const text = keyedTextFor(query)
    const pooled = Effect.suspend(() =>
      OrganizationReads.run<Row & KeyRow>(sql, { ...query, text }, hash, `key ${digest}`)
    )
    const isShort = query.isPlannedOnce && !(query.isCostly === true && sql.isPooled === true)
    const found = isShort
      ? Effect.filterOrElse(
          short<Row & KeyRow>(text, [hash, ...query.values], query.limit + 1),
          Predicate.isNotUndefined,
          () => pooled
        )
      : pooled
    return Effect.flatMap(found, (rows) =>
      Effect.flatMap(resolveRow(keys, digest, rows[0]), (organization) =>
        Effect.as(note({ organization }), rows.slice(1))
      )
    )
  }

  /** Asks in the background where keys are: until that is known, they are looked up first. */
  const locate = Effect.suspend(() =>
    sql.distribution.isDistributed() === undefined ? Effect.forkDetach(sql.distribution.refresh) : Effect.void
  )

  /** The organization of a key, from a statement of its own. */
  const resolve: LookUp = (key, digest) => {
    const resolved = Effect.suspend(() => resolver.resolve(Redacted.make(key)))
    if (!isBeside()) return Effect.andThen(locate, resolved)
    return Effect.flatMap(short<KeyRow>(keyStatement, [digestBytes(digest)], 1), (found) =>
      found === undefined ? resolved : resolveRow(keys, digest, found[0])
    )
  }

  const readAfterKey = Effect.fnUntraced(function* <Row extends object>(
    query: OrganizationReads.Query<Row>,
    key: string
  ) {
    const id = yield* Effect.andThen(locate, resolver.resolve(Redacted.make(key)))
    yield* note({ organization: id })
    return yield* Effect.provideService(plain(query), CurrentOrganization, { id })
  })

  // No generator: it would be 3 % of what a single record allocates.
  const read: OrganizationReads.Reader<RecordStoreDown | KeyError, PresentedKey> = <Row extends object>(
    query: OrganizationReads.Query<Row>
  ) =>
    Effect.flatMap(PresentedKey, ({ digest, key }) =>
      query.limit <= longestPage && isBeside() ? readByKey(query, digest) : readAfterKey(query, key)
    )
  return { read, resolve }
})
