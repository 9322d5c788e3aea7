/** The bounds of backlogs: of an organization, and of all unknown ones together, since anyone can make organizations up. */
import { Clock, Effect, Schema } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { Fragment } from "effect/sql/Statement"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"

/** Limits for tasks, and for bytes of payload as they are stored. */
type Bound = Readonly<Record<"tasks" | "bytes", number>>

const mebibyte = 1024 * 1024

/**
 * The bounds of a known organization, of an unknown one, and of all unknown ones together. An organization is known by a
 * row in `organizations`, or by a signing secret: nobody else can deliver in its name.
 */
export type Bounds = Readonly<Record<"known" | "unknown" | "allUnknown", Bound>>

export const bounds: Bounds = {
  known: { tasks: 100_000, bytes: 256 * mebibyte },
  unknown: { tasks: 10_000, bytes: 64 * mebibyte },
  allUnknown: { tasks: 20_000, bytes: 128 * mebibyte }
}

/** A backlog, counted up to its bound. */
const Pending = Schema.Struct({ tasks: Schema.Int, bytes: Schema.Finite, isKnown: Schema.Boolean })
type Pending = typeof Pending.Type

export interface Counts<E> {
  readonly of: (organization: string) => Effect.Effect<Pending, E>
  readonly ofAllUnknown: Effect.Effect<Pending, E>
}

/**
 * A count allows this part of the rest, so that this many processes together stay within the bounds, but for deliveries
 * that they store at the same moment.
 */
const part = 1 / 16

/** A full backlog is counted again after this time, in nanoseconds. */
const rest = 1_000_000_000n

/** Anyone can make organizations up: beyond this number, the one that was longest unused is counted again. */
const mostRemembered = 10_000

/** The key of all unknown organizations. No organization has an empty id. */
const everyone = ""

const isOpen = ({ bytes, tasks }: Bound) => tasks > 0 && bytes > 0

/** Decides whether a delivery of some bytes may be stored. Not each delivery counts a backlog. */
export const makeRoom = <E>({ allUnknown, known, unknown }: Bounds, counts: Counts<E>) => {
  const allowances = new Map<string, Pending & { readonly until: bigint }>()

  const take = Effect.fnUntraced(function* (key: string, size: number, count: Effect.Effect<Pending, E>, most?: Bound) {
    const now = yield* Clock.monotonicTimeNanos
    let allowance = allowances.get(key)
    if (allowance === undefined || (!isOpen(allowance) && now >= allowance.until)) {
      const { bytes, isKnown, tasks } = yield* count
      const bound = most ?? (isKnown ? known : unknown)
      const left = { tasks: Math.ceil((bound.tasks - tasks) * part), bytes: Math.ceil((bound.bytes - bytes) * part) }
      allowance = { ...left, isKnown, until: isOpen(left) ? 0n : now + rest }
    }
    const hasRoom = isOpen(allowance)
    const { bytes, tasks } = allowance
    allowances.delete(key)
    allowances.set(key, hasRoom ? { ...allowance, tasks: tasks - 1, bytes: bytes - size } : allowance)
    const [oldest = key] = allowances.keys()
    if (allowances.size > mostRemembered) allowances.delete(oldest)
    return { hasRoom, isKnown: allowance.isKnown }
  })

  return Effect.fnUntraced(function* (organization: string, size: number) {
    const own = yield* take(organization, size, counts.of(organization))
    if (own.isKnown || !own.hasRoom) return own
    const all = yield* take(everyone, size, counts.ofAllUnknown, allUnknown)
    // The organization may become known, and is then refused no more.
    if (!all.hasRoom) allowances.delete(organization)
    return all
  })
}

const rows = rowsOf(Pending)

/** Counts backlogs, each in an index that only its statement has the order of. */
export const counting = (sql: Database, bounded: Bounds, isDistributed: () => boolean): Counts<SqlError> => {
  const { allUnknown, known, unknown } = bounded
  const count = (isKnown: Fragment, condition: Fragment, order: string, most: number) =>
    Effect.map(
      rows(sql`
        select count(*)::integer as tasks, coalesce(sum(bytes), 0)::float8 as bytes, ${isKnown} as "isKnown"
        from (
          select pg_column_size(payload) as bytes from deletion_tasks where state = 'scheduled' and ${condition}
          order by ${sql.literal(`${order} limit ${most}`)}
        ) pending`),
      ([pending = { tasks: 0, bytes: 0, isKnown: false }]) => pending
    )
  return {
    of: (organization) =>
      count(
        sql`(
          exists (select from organizations where organization_id = ${organization})
          or exists (select from intake_secrets where organization_id = ${organization})
        )`,
        sql`
          ${isDistributed() ? sql`organization_id = ${organization}` : sql`true`}
          and (organization_id, due_at) > (${organization}, '-infinity')
          and (organization_id, due_at) <= (${organization}, 'infinity')`,
        "organization_id nulls first, due_at",
        Math.max(known.tasks, unknown.tasks)
      ),
    ofAllUnknown: count(sql`false`, sql`not is_known`, "due_at", allUnknown.tasks)
  }
}
