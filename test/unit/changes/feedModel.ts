/** A model of a database as the feed of changes sees it: transactions, marks, crashes and failovers. No SQL. */
import { Array, Effect, Order, Record } from "effect"
import { invoiceLines, invoices } from "../../../src/api/records/Invoices.ts"
import type { FeedSnapshot } from "../../../src/changes/Cursor.ts"
import * as Feed from "../../../src/changes/Feed.ts"
import { fromText } from "../../../src/database/Columns.ts"
import { branchTable, type ChangeRow, removalMark, rowPlace } from "../../../src/changes/FeedPage.ts"
import { byPlace, isAfter, toRanges, type Walk } from "../../../src/changes/Walk.ts"

const resources = [invoices, invoiceLines]
/** The resources of the model. */
export const names = resources.map(({ name }) => name)
/** The resource of each table. */
const nameOf = new Map<string, string>(resources.map(({ name, table }) => [table, name]))

interface Transaction {
  readonly position: number
  /** The version of each record; null for a removal. */
  readonly writes: Readonly<Record<string, number | null>>
  readonly removed: ReadonlyArray<string>
}

interface Mark {
  readonly token: string
  readonly run: number
  readonly proven: number
  readonly durableUntil: number
}

/** A server, whose records and removals have keys such as `invoices a`. */
export interface Server {
  readonly next: number
  /** The lowest id that a crash gives out again. */
  readonly durable: number
  /** The number of versions that were written. */
  readonly versions: number
  /** The number of commits. */
  readonly wal: number
  readonly run: number
  readonly begunAt: number
  readonly open: Readonly<Record<string, Transaction>>
  readonly rows: Readonly<Record<string, { readonly version: number; readonly position: number }>>
  readonly removals: Readonly<Record<string, number>>
  readonly keptFrom: number
  readonly tokens: Readonly<Record<string, string>>
  /** The newest first. */
  readonly marks: ReadonlyArray<Mark>
}

const runningIn = ({ open }: Server) =>
  Array.sort(
    Object.values(open).map(({ position }) => position),
    Order.Number
  )

/** Writes or deletes a record; does nothing where it would wait for another transaction. */
export const write = (server: Server, writer: number, key: string, isDelete: boolean): Server => {
  const { next, open, rows, versions } = server
  const { [writer]: own = { position: next, writes: {}, removed: [] }, ...others } = open
  const exists = key in own.writes ? own.writes[key] !== null : key in rows
  if (Object.values(others).some(({ writes }) => key in writes) || (isDelete && !exists)) return server
  const writes = { ...own.writes, [key]: isDelete ? null : versions + 1 }
  const removed = isDelete ? [...own.removed, key] : own.removed
  return {
    ...server,
    versions: versions + 1,
    next: Math.max(next, own.position + 1),
    open: { ...others, [writer]: { ...own, writes, removed } }
  }
}

/** Commits a transaction, or rolls it back. */
export const end = (server: Server, writer: number, isCommit: boolean): Server => {
  const { [writer]: own, ...open } = server.open
  if (own === undefined || !isCommit) return { ...server, open }
  const { position, removed, writes } = own
  const written = Record.map(writes, (version) => (version === null ? null : { version, position }))
  return {
    ...server,
    open,
    durable: Math.max(server.durable, position + 1),
    wal: server.wal + 1,
    rows: Record.filter({ ...server.rows, ...written }, (row) => row !== null),
    removals: { ...server.removals, ...Object.fromEntries(removed.map((key) => [key, position])) }
  }
}

/** Writes a mark, as the clock of the changes does. */
export const mark = (server: Server): Server => {
  const {
    begunAt,
    marks: [newest, ...older],
    next: own,
    run
  } = server
  const [lowest = own + 1] = runningIn(server)
  const wal = server.wal + 1
  const written = { token: run.toString(16).padStart(8, "0"), run, proven: lowest, durableUntil: wal }
  const ended = newest === undefined ? [] : [{ ...newest, durableUntil: Math.max(newest.durableUntil, begunAt) }]
  const marks = newest?.run === run ? [written, ...older] : [written, ...ended, ...older]
  return { ...server, next: own + 1, durable: own + 1, wal, marks }
}

/** Deletes the removals that only readers need who have not read since the last mark. */
export const forget = (server: Server): Server => {
  const keptFrom = server.marks[0]?.proven ?? 0
  return { ...server, keptFrom, removals: Record.filter(server.removals, (position) => position >= keptFrom - 1) }
}

/** The server after a crash, or after the promotion of a standby. Ids of transactions that did not commit are given again. */
export const restart = (server: Server, run: number): Server => ({
  ...server,
  open: {},
  next: server.durable,
  begunAt: server.wal,
  run
})

/** Empties a table where no transaction is open. */
export const truncate = (server: Server, table: string): Server => {
  if (Object.keys(server.open).length > 0) return server
  const isLeft = (_: unknown, key: string) => !key.startsWith(`${table} `)
  const { next, wal } = server
  const tokens = { ...server.tokens, [table]: next.toString(16).padStart(8, "0") }
  const [rows, removals] = [Record.filter(server.rows, isLeft), Record.filter(server.removals, isLeft)]
  return { ...server, rows, removals, tokens, next: next + 1, durable: next + 1, wal: wal + 1 }
}

const token = "00000000"
/** A server with an invoice and a line. */
export const initial = mark({
  next: 3,
  durable: 3,
  versions: 0,
  wal: 0,
  run: 0,
  begunAt: 0,
  open: {},
  rows: { "invoices b": { version: 0, position: 1 }, "invoice_lines c": { version: 0, position: 2 } },
  removals: {},
  keptFrom: 0,
  tokens: { organizations: token, invoices: token, invoice_lines: token },
  marks: []
})

const snapshotOf = (server: Server, of: string): FeedSnapshot => {
  const { keptFrom, marks, next, run, tokens, wal } = server
  const running = runningIn(server)
  const known = marks.find((one) => one.token === of)
  return {
    base: 0,
    snapshot: `${running[0] ?? next}:${next}:${running.join(",")}`,
    organization: "",
    tokens,
    mark: marks[0]?.token ?? "",
    marked: marks[0]?.proven ?? 0,
    keptFrom,
    wal,
    isInPlace: true,
    isMarked: marks[0]?.run === run,
    proven: known?.proven ?? null,
    durableUntil: known?.durableUntil ?? null
  }
}

const changesOf = ({ removals, rows }: Server): ReadonlyArray<ChangeRow> => {
  const written = Object.entries(rows).map(([key, { position, version }]) => {
    const [branch = "", id] = key.split(" ")
    return { record: fromText(JSON.stringify({ id, version })), detail: null, position, branch }
  })
  const removed = Object.entries(removals).map(([key, position]) => {
    const [table = "", id = ""] = key.split(" ")
    return { record: null, detail: `${key in rows ? "+" : "-"}${id}`, position, branch: `${table}${removalMark}` }
  })
  return Array.sort([...written, ...removed], Order.mapInput(byPlace, rowPlace))
}

/** A primary that changes between the pages of a reader, and the state that a failover brings. */
export interface Model {
  primary: Server
  standby: Server
}

/** The feed of the primary of a model, as the service serves it. */
export const feedOf = (model: Model) => {
  const foundIn = (server: Server, walks: ReadonlyArray<Walk>, limit: number, of: string) => {
    const snapshot = snapshotOf(server, of)
    // As the clock of the changes does meanwhile.
    if (!snapshot.isMarked) model.primary = mark(server)
    const rows = walks.flatMap((walk) =>
      toRanges(walk).flatMap((range) =>
        changesOf(server).filter((row) => {
          const { position, branch } = rowPlace(row)
          const isRead = (nameOf.get(branchTable(branch)) ?? "") in walk.feeds && !(range.isLoad && row.record === null)
          return isRead && isAfter(rowPlace(row), range) && position < range.high
        })
      )
    )
    return { snapshot, rows: rows.slice(0, limit + 1) }
  }
  return Feed.make(resources, {
    read: (walks, limit, of) => Effect.sync(() => foundIn(model.primary, walks, limit, of)),
    polls: { poll: () => Effect.succeedNone }
  })
}

/** The version of each record of some resources. */
export const committed = ({ rows }: Server, read: ReadonlyArray<string>) =>
  Record.filter(
    Record.mapEntries(rows, ({ version }, key) => {
      const [table = "", id] = key.split(" ")
      return [`${nameOf.get(table)} ${id}`, version]
    }),
    (_, key) => read.some((name) => key.startsWith(`${name} `))
  )
