/**
 * Whose tasks a statement of the worker is about: those of any number of organizations together, or of one alone. On a
 * distributed database a statement must be of one, whose id is a parameter in the condition of each table: that is how
 * Citus knows which server it goes to.
 */
import * as EffectArray from "effect/Array"

/** What a statement needs to hold a task: that it still has the token of the claim. */
export interface Held {
  readonly organization: string
  readonly taskId: string
  readonly token: string
}

/** The parts of a statement that are its owner's. Its first three parameters are those of `parametersOf`. */
export interface Owner {
  /** The SQL of the claims: rows of `organization_id`, `id` and `token`. */
  readonly claims: string
  /** The SQL of the organization that a row of an alias belongs to. */
  readonly idIn: (alias: string) => string
  readonly parametersOf: (claims: ReadonlyArray<Held>) => ReadonlyArray<unknown>
}

const idsOf = (claims: ReadonlyArray<Held>) => claims.map(({ taskId }) => taskId)
const tokensOf = (claims: ReadonlyArray<Held>) => claims.map(({ token }) => token)

/** Any number of organizations. */
export const several: Owner = {
  claims: "select * from unnest($1::text[], $2::uuid[], $3::uuid[]) as claims (organization_id, id, token)",
  idIn: (alias) => `${alias}.organization_id`,
  parametersOf: (claims) => [claims.map(({ organization }) => organization), idsOf(claims), tokensOf(claims)]
}

/** One organization, the one of all the claims. */
export const one: Owner = {
  claims: `select $1::text collate "C" as organization_id, claims.* from unnest($2::uuid[], $3::uuid[]) as claims (id, token)`,
  idIn: () => "$1",
  parametersOf: (claims) => [claims[0]?.organization ?? "", idsOf(claims), tokensOf(claims)]
}

/** The owners, by how many organizations they are. */
export const owners = { one, several } as const

/** What belongs to each organization, in the order in which it was given. */
export const byOrganization = <A extends { readonly organization: string }>(
  all: ReadonlyArray<A>
): ReadonlyArray<EffectArray.NonEmptyReadonlyArray<A>> =>
  Object.values(EffectArray.groupBy(all, ({ organization }) => `=${organization}`))
