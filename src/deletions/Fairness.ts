/** The bounds of an organization's backlog. */
import { Clock, Duration, Effect, Schema } from "effect"
import { rowsOf } from "../database/Columns.ts"
import type { Database } from "../database/Database.ts"

/** Limits for tasks, and for bytes of payload as they are stored. */
interface Bound {
  readonly tasks: number
  readonly bytes: number
}

const mebibyte = 1024 * 1024

/** The bounds of an organization with a row in `organizations`, and of one without. */
export type Bounds = Readonly<Record<"known" | "unknown", Bound>>

export const bounds: Bounds = {
  known: { tasks: 100_000, bytes: 256 * mebibyte },
  unknown: { tasks: 10_000, bytes: 64 * mebibyte }
}

/** The backlog of an organization, counted up to its bound. */
const Pending = Schema.Struct({ tasks: Schema.Int, bytes: Schema.Finite, isKnown: Schema.Boolean })
type Pending = typeof Pending.Type

/**
 * A count allows this part of the rest, so that this many processes together stay within the bounds, but for deliveries
 * that they store at the same moment.
 */
const part = 1 / 16

/** A full organization is counted again after this time. */
const rest = Duration.toMillis("1 second")

/** Anyone can make organizations up: beyond this number, the one that was longest unused is counted again. */
const mostRemembered = 10_000

const isOpen = ({ bytes, tasks }: Bound) => tasks > 0 && bytes > 0

/** Decides whether a delivery of some bytes may be stored. Not each delivery counts the backlog of its organization. */
export const makeRoom = <E>({ known, unknown }: Bounds, count: (organization: string) => Effect.Effect<Pending, E>) => {
  const allowances = new Map<string, Bound & { readonly until: number }>()
  return Effect.fnUntraced(function* (organization: string, size: number) {
    const now = yield* Clock.currentTimeMillis
    let allowance = allowances.get(organization)
    if (allowance === undefined || (!isOpen(allowance) && now >= allowance.until)) {
      const pending = yield* count(organization)
      const bound = pending.isKnown ? known : unknown
      const left = {
        tasks: Math.ceil((bound.tasks - pending.tasks) * part),
        bytes: Math.ceil((bound.bytes - pending.bytes) * part)
      }
      allowance = { ...left, until: isOpen(left) ? 0 : now + rest }
    }
    const hasRoom = isOpen(allowance)
    const { bytes, tasks, until } = allowance
    allowances.delete(organization)
    allowances.set(organization, hasRoom ? { tasks: tasks - 1, bytes: bytes - size, until } : allowance)
    const [oldest = organization] = allowances.keys()
    if (allowances.size > mostRemembered) allowances.delete(oldest)
    return hasRoom
  })
}

/** Counts backlogs in the index for turns: only that has this order. */
export const counting = (sql: Database, { known, unknown }: Bounds, isDistributed: () => boolean) => {
  const most = sql.literal(`limit ${Math.max(known.tasks, unknown.tasks)}`)
  return (organization: string) =>
    Effect.map(
      rowsOf(Pending)(sql`
        select count(*)::integer as tasks, coalesce(sum(pg_column_size(payload)), 0)::float8 as bytes,
          exists (select from organizations where organization_id = ${organization}) as "isKnown"
        from (
          select payload from deletion_tasks
          where ${isDistributed() ? sql`organization_id = ${organization}` : sql`true`}
            and (organization_id, due_at) > (${organization}, '-infinity')
            and (organization_id, due_at) <= (${organization}, 'infinity') and state = 'scheduled'
          order by organization_id nulls first, due_at ${most}
        ) pending`),
      ([pending = { tasks: 0, bytes: 0, isKnown: false }]) => pending
    )
}
