/**
 * A model of the order of changes, small enough to try every history of it.
 *
 * A transaction takes an id, stamps what it writes with that id, and commits or aborts; ids are given out in order, and
 * transactions end in any. A reader asks for pages, each of any size, and applies them.
 */

/** A version of a record, or the removal of the record with this id. Versions of a record are numbered as they are written. */
interface Entry {
  readonly id: number
  readonly isRemoval: boolean
  readonly stamp: number
  readonly version: number
}

interface Transaction {
  readonly id: number
  readonly writes: ReadonlyArray<Entry>
}

interface Database {
  /** The id that the next transaction takes. */
  readonly next: number
  /** The highest id of those that have ended. */
  readonly ended: number
  readonly open: ReadonlyArray<Transaction>
  /** What is committed: of each id its record, or no record, and its last removal. */
  readonly entries: ReadonlyArray<Entry>
  readonly timeline: number
  /** What the last mark of each timeline proves: every transaction with a lower id had ended when it was written. */
  readonly proven: ReadonlyArray<number>
}

/** Where a reader is: after the entry with this stamp and id, as snapshots of a timeline saw it. */
interface Cursor {
  readonly stamp: number
  readonly id: number
  readonly timeline: number
  /** No snapshot that it was read at saw a transaction with this id or a higher one. */
  readonly ceiling: number
}

/** What is known of a record: its version, and whether it is there. */
type Copy = ReadonlyArray<{ readonly version: number; readonly exists: boolean }>

interface State {
  readonly database: Database
  /** The database as the replica has it, which lags. */
  readonly replica: Database | undefined
  readonly cursor: Cursor
  readonly copy: Copy
  readonly fault: string | undefined
}

/** The rules of the order. Each can be left out, to see what it is for. */
export interface Rules {
  /** A page ends below the lowest id that is still in progress. */
  readonly horizon: boolean
  /** A removal of what exists again is not told, or comes before or after the record where they have one stamp. */
  readonly removals: "hidden" | "before" | "after"
  /** After a failover, the last mark that survived must prove all that a cursor has seen, or only what it has told. */
  readonly proves: "all seen" | "all told" | "nothing"
}

export const rules: Rules = { horizon: true, removals: "hidden", proves: "all seen" }

/** How large a history is. */
export interface Bounds {
  readonly records: number
  readonly transactions: number
  readonly writes: number
  /** How many transactions may be open at once. */
  readonly open: number
  readonly pages: ReadonlyArray<number>
  /** What a replica that lags is for: it catches up now and then and is read as well, or it takes over, once. */
  readonly replica?: "is read" | "takes over"
}

const start: Cursor = { stamp: -1, id: -1, timeline: 0, ceiling: 0 }

const initial = ({ records }: Bounds): State => {
  const database = { next: 0, ended: -1, open: [], entries: [], timeline: 0, proven: [0] }
  const copy = Array.from({ length: records }, () => ({ version: 0, exists: false }))
  return { database, replica: undefined, cursor: start, copy, fault: undefined }
}

const order = (a: Entry, b: Entry) => a.stamp - b.stamp || a.id - b.id

const removalsFirst = (a: Entry, b: Entry) => Number(b.isRemoval) - Number(a.isRemoval)

const horizonOf = ({ ended, open }: Database) => Math.min(ended + 1, ...open.map(({ id }) => id))

const recordOf = (entries: ReadonlyArray<Entry>, id: number) =>
  entries.find((entry) => entry.id === id && !entry.isRemoval)

const write = (entries: ReadonlyArray<Entry>, entry: Entry) =>
  [...entries.filter(({ id, isRemoval }) => id !== entry.id || (isRemoval && !entry.isRemoval)), entry].toSorted(order)

const committed = (database: Database, { id, writes }: Transaction): Database => ({
  ...aborted(database, id),
  entries: writes.reduce(write, database.entries)
})

const aborted = (database: Database, ended: number): Database => ({
  ...database,
  ended: Math.max(database.ended, ended),
  open: database.open.filter(({ id }) => id !== ended)
})

type Step = readonly [what: string, database: Database]

/** What the writers can do next. A record that an open transaction has written is locked. */
function* writersSteps(database: Database, bounds: Bounds): Generator<Step> {
  const { next, open } = database
  if (next < bounds.transactions && open.length < bounds.open)
    yield [`${next} begins`, { ...database, next: next + 1, open: [...open, { id: next, writes: [] }] }]
  for (const transaction of open) {
    const { id: stamp, writes } = transaction
    yield [`${stamp} commits`, committed(database, transaction)]
    if (writes.length > 0) yield [`${stamp} aborts`, aborted(database, stamp)]
    if (writes.length === bounds.writes) continue
    for (let id = 0; id < bounds.records; id++) {
      if (open.some((other) => other !== transaction && other.writes.some((entry) => entry.id === id))) continue
      const seen = writes.reduce(write, database.entries)
      const version = 1 + Math.max(0, ...seen.filter((entry) => entry.id === id).map((entry) => entry.version))
      for (const isRemoval of recordOf(seen, id) === undefined ? [false] : [false, true]) {
        const written = { ...transaction, writes: [...writes, { id, isRemoval, stamp, version }] }
        const others = open.map((other) => (other === transaction ? written : other))
        yield [`${stamp} ${isRemoval ? "removes" : "writes"} ${id}`, { ...database, open: others }]
      }
    }
  }
}

/** A transaction of its own writes down how far all others have ended. */
const marked = (database: Database): Database => {
  const own = database.next
  const ended = Math.max(database.ended, own)
  const proven = database.proven.with(database.timeline, horizonOf({ ...database, ended }))
  return { ...database, next: own + 1, ended, proven }
}

/** A standby that had come as far as this takes over. What was open there is gone, and ids go on from where it was. */
const promoted = (standby: Database): Database => ({
  ...standby,
  open: [],
  ended: standby.next - 1,
  timeline: standby.timeline + 1,
  proven: [...standby.proven, 0]
})

/** Whether a cursor goes on: on its own timeline, or where all that it has seen has survived. */
const isAccepted = ({ ceiling, stamp, timeline }: Cursor, database: Database, { proves }: Rules) =>
  timeline === database.timeline ||
  proves === "nothing" ||
  (proves === "all seen" ? ceiling : stamp + 1) <= (database.proven[timeline] ?? 0)

const pageOf = (database: Database, cursor: Cursor, limit: number, { horizon, removals }: Rules) =>
  database.entries
    .filter(({ id, isRemoval }) => !isRemoval || removals !== "hidden" || recordOf(database.entries, id) === undefined)
    .filter(({ stamp }) => !horizon || stamp < horizonOf(database))
    .filter(({ id, stamp }) => stamp > cursor.stamp || (stamp === cursor.stamp && id > cursor.id))
    .toSorted((a, b) => order(a, b) || (removals === "before" ? removalsFirst(a, b) : removalsFirst(b, a)))
    .slice(0, limit)

/** Applies a page as a client does. The fault, if an older state came after a newer one. */
const applied = (copy: Copy, page: ReadonlyArray<Entry>) => {
  let fault: string | undefined
  const next = page.toSorted(removalsFirst).reduce((known, { id, isRemoval, version }) => {
    if (version < (known[id]?.version ?? 0)) fault = `an older state of ${id} came after a newer one`
    return known.with(id, { version, exists: !isRemoval })
  }, copy)
  return { copy: next, fault }
}

/** Reads a page of a database: this one, or a replica's. */
const read = (state: State, database: Database, limit: number, given: Rules): State => {
  if (!isAccepted(state.cursor, database, given)) {
    const copy = state.copy.map(() => ({ version: 0, exists: false }))
    return { ...state, copy, cursor: { ...start, timeline: database.timeline } }
  }
  const page = pageOf(database, state.cursor, limit, given)
  const { id, stamp } = page.at(-1) ?? state.cursor
  const ceiling = Math.max(state.cursor.ceiling, database.ended + 1)
  return { ...state, ...applied(state.copy, page), cursor: { id, stamp, timeline: database.timeline, ceiling } }
}

/** What open transactions have written is not seen in a replica. */
const replicaOf = (database: Database): Database => ({
  ...database,
  open: database.open.map(({ id }) => ({ id, writes: [] }))
})

/** What can happen next. */
function* stepsFrom(state: State, bounds: Bounds, given: Rules): Generator<readonly [what: string, state: State]> {
  const { database, replica } = state
  const then = (to: Database): State => ({ ...state, database: to })
  for (const [what, to] of writersSteps(database, bounds)) yield [what, then(to)]
  for (const limit of bounds.pages) yield [`a page of ${limit}`, read(state, database, limit, given)]
  const snapshot = { ...state, replica: replicaOf(database) }
  if (bounds.replica === "is read") {
    yield ["the replica catches up", snapshot]
    if (replica === undefined) return
    for (const limit of bounds.pages) yield [`a page of ${limit} of the replica`, read(state, replica, limit, given)]
  }
  if (bounds.replica === "takes over" && database.timeline === 0) {
    if (database.next < bounds.transactions) yield ["a mark", then(marked(database))]
    if (replica === undefined) yield ["the replica falls behind", snapshot]
    else yield ["the replica takes over", { ...state, database: promoted(replica), replica: undefined }]
  }
}

/** What is wrong with a state, if anything: nothing is open, the reader has read all there is, and yet lacks something. */
const faultOf = ({ copy, cursor, database, fault }: State, given: Rules) => {
  if (fault !== undefined) return fault
  const isOver = database.open.length === 0 && pageOf(database, cursor, 1, given).length === 0
  if (!isOver || !isAccepted(cursor, database, given)) return undefined
  const lost = copy.findIndex(({ exists, version }, id) => {
    const record = recordOf(database.entries, id)
    return record === undefined ? exists : !exists || version !== record.version
  })
  return lost === -1 ? undefined : `record ${lost} is lost`
}

interface Visit {
  readonly state: State
  readonly what: string
  readonly from: Visit | undefined
}

const historyOf = ({ from, what }: Visit): ReadonlyArray<string> =>
  from === undefined ? [] : [...historyOf(from), what]

/** Tries every history. Says how many states there are, or how the shortest history goes that ends in a fault. */
export const explore = (bounds: Bounds, given: Rules = rules) => {
  const first: Visit = { state: initial(bounds), what: "", from: undefined }
  const seen = new Set([JSON.stringify(first.state)])
  const visits = [first]
  for (const from of visits) {
    const fault = faultOf(from.state, given)
    if (fault !== undefined) return { states: visits.length, fault, history: historyOf(from) }
    for (const [what, state] of stepsFrom(from.state, bounds, given)) {
      const key = JSON.stringify(state)
      if (seen.has(key)) continue
      seen.add(key)
      visits.push({ state, what, from })
    }
  }
  return { states: visits.length, fault: undefined, history: [] }
}
