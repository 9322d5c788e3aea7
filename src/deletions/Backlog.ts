/** The bounds of pending tasks: of an organization, and of all unknown ones together, since anyone can make organizations up. */
import { Clock, Effect, Schema } from "effect"
import { decodeRows } from "../database/Columns.ts"
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

/** A count allows this part of the rest, so that so many processes together stay within the bounds. */
const part = 1 / 16

/** A full backlog is counted again after this time, in nanoseconds. */
const rest = 1_000_000_000n

/** Anyone can make organizations up: beyond this number, the one that was longest unused is counted again. */
const mostKept = 10_000

/**
 * Decides whether a delivery may be stored. Not each delivery counts a backlog. `count`: the pending tasks of an organization,
 * or without one of all unknown ones.
 */
export const makeRoom = <E>(
  { allUnknown, known, unknown }: Bounds,
  count: (organization?: string) => Effect.Effect<Pending, E>
) => {
  const allowances = new Map<
    string | undefined,
    { readonly left: number; readonly isKnown: boolean; readonly until: bigint }
  >()

  const take = Effect.fnUntraced(function* (organization?: string) {
    const now = yield* Clock.monotonicTimeNanos
    let allowance = allowances.get(organization)
    if (allowance === undefined || (allowance.left <= 0 && now >= allowance.until)) {
      const { isKnown, tasks } = yield* count(organization)
      const bound = organization === undefined ? allUnknown : isKnown ? known : unknown
      const left = Math.ceil((bound - tasks) * part)
      allowance = { left, isKnown, until: left > 0 ? 0n : now + rest }
    }
    allowances.delete(organization)
    allowances.set(organization, { ...allowance, left: allowance.left - 1 })
    if (allowances.size > mostKept) allowances.delete(allowances.keys().next().value)
    return { hasRoom: allowance.left > 0, isKnown: allowance.isKnown }
  })

  return Effect.fnUntraced(function* (organization: string) {
    const own = yield* take(organization)
    if (own.isKnown || !own.hasRoom) return own
    const all = yield* take()
    // The organization may become known, and is then refused no more.
    if (!all.hasRoom) allowances.delete(organization)
    return all
  })
}

const rows = decodeRows(Pending)

/** Counts pending tasks, each in the order of an index. */
export const counting = (sql: Database, { allUnknown, known, unknown }: Bounds) =>
  Effect.fnUntraced(function* (organization?: string) {
    const [pending = { tasks: 0, isKnown: false }] = yield* rows(
      organization === undefined
        ? sql`
          select count(*)::integer as tasks, false as "isKnown" from (
            select 1 from deletion_tasks where state = 'scheduled' and not is_known
            order by due_at ${sql.literal(`limit ${allUnknown}`)}
          ) pending`
        : sql`
          select count(*)::integer as tasks, (
            exists (select from organizations where organization_id = ${organization})
            or exists (select from intake_secrets where organization_id = ${organization})
          ) as "isKnown" from (
            select 1 from deletion_tasks where state = 'scheduled' and organization_id = ${organization}
            order by scheduled_for, id ${sql.literal(`limit ${Math.max(known, unknown)}`)}
          ) pending`
    )
    return pending
  })
