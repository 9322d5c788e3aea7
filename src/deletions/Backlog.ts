/** The bounds of pending tasks: of an organization, and of all unknown ones together, since anyone can make organizations up. */
import { Clock, Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"

/**
 * The most tasks of a known organization, of an unknown one, and of all unknown ones together. An organization is known by a
 * row in `organizations`, or by a signing secret: nobody else can deliver in its name.
 */
export type Bounds = Readonly<Record<"known" | "unknown" | "allUnknown", number>>

export const bounds: Bounds = { known: 10_000, unknown: 5000, allUnknown: 10_000 }

/** Pending tasks, counted up to their bound. */
const Pending = Schema.Struct({ tasks: Schema.Int, isKnown: Schema.Boolean })
type Pending = typeof Pending.Type

export interface Counts<E> {
  readonly of: (organization: string) => Effect.Effect<Pending, E>
  readonly ofAllUnknown: Effect.Effect<Pending, E>
}

/** A count allows this part of the rest, so that so many processes together stay within the bounds. */
const part = 1 / 16

/** A full backlog is counted again after this time, in nanoseconds. */
const rest = 1_000_000_000n

/** Anyone can make organizations up: beyond this number, the one that was longest unused is counted again. */
const mostKept = 10_000

/** The key of all unknown organizations. No organization has an empty id. */
const everyone = ""

/** Decides whether a delivery may be stored. Not each delivery counts a backlog. */
export const makeRoom = <E>({ allUnknown, known, unknown }: Bounds, counts: Counts<E>) => {
  const allowances = new Map<string, { readonly left: number; readonly isKnown: boolean; readonly until: bigint }>()

  const take = Effect.fnUntraced(function* (key: string, count: Effect.Effect<Pending, E>, most?: number) {
    const now = yield* Clock.monotonicTimeNanos
    let allowance = allowances.get(key)
    if (allowance === undefined || (allowance.left <= 0 && now >= allowance.until)) {
      const { isKnown, tasks } = yield* count
      const left = Math.ceil(((most ?? (isKnown ? known : unknown)) - tasks) * part)
      allowance = { left, isKnown, until: left > 0 ? 0n : now + rest }
    }
    allowances.delete(key)
    allowances.set(key, { ...allowance, left: allowance.left - 1 })
    const [oldest = key] = allowances.keys()
    if (allowances.size > mostKept) allowances.delete(oldest)
    return { hasRoom: allowance.left > 0, isKnown: allowance.isKnown }
  })

  return Effect.fnUntraced(function* (organization: string) {
    const own = yield* take(organization, counts.of(organization))
    if (own.isKnown || !own.hasRoom) return own
    const all = yield* take(everyone, counts.ofAllUnknown, allUnknown)
    // The organization may become known, and is then refused no more.
    if (!all.hasRoom) allowances.delete(organization)
    return all
  })
}

const rows = rowsOf(Pending)

/** Counts pending tasks, each in the order of an index. */
export const counting = (sql: Database, { allUnknown, known, unknown }: Bounds): Counts<SqlError> => {
  const count = (isKnown: Fragment, condition: Fragment, order: string, most: number) =>
    Effect.map(
      rows(sql`
        select count(*)::integer as tasks, ${isKnown} as "isKnown" from (
          select 1 from deletion_tasks where state = 'scheduled' and ${condition} order by ${sql.literal(`${order} limit ${most}`)}
        ) pending`),
      ([pending = { tasks: 0, isKnown: false }]) => pending
    )
  return {
    of: (organization) =>
      count(
        sql`(
          exists (select from organizations where organization_id = ${organization})
          or exists (select from intake_secrets where organization_id = ${organization})
        )`,
        sql`organization_id = ${organization}`,
        "scheduled_for, id",
        Math.max(known, unknown)
      ),
    ofAllUnknown: count(sql`false`, sql`not is_known`, "due_at", allUnknown)
  }
}
