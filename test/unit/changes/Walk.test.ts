/**
 * A reader of the changes of two tables, by the feed's own functions, over a model of a database: whatever happens between
 * its pages, its copy is a state of the database wherever a page is consistent.
 */
import { assert, it } from "@effect/vitest"
import { Arbitrary, Effect, Fiber, Record, Schema } from "effect"
import { TestClock } from "effect/testing"
import { readerOf } from "../../support/changes.ts"
import { long, tries } from "../../support/tries.ts"
import * as Model from "./feedModel.ts"

interface Reader {
  readonly cursor: string | undefined
  readonly copy: Readonly<Record<string, number>>
  /** The highest version of each record that it has had. */
  readonly known: Readonly<Record<string, number>>
}

const newReader: Reader = { cursor: undefined, copy: {}, known: {} }

const json = Schema.encodeUnknownEffect(Schema.fromJsonString(Schema.Unknown))

/** The reader after a page. */
const readPage = Effect.fnUntraced(function* (
  { copy, cursor, known }: Reader,
  feed: ReturnType<typeof Model.feedOf>,
  truth: Model.Server,
  limit: number,
  resources: ReadonlyArray<string> = Model.names
) {
  const { at, read } = readerOf(feed, "", resources)
  at.cursor = cursor
  const reading = yield* read(limit).pipe(
    Effect.catchTag("CursorExpired", () => Effect.undefined),
    Effect.forkChild({ startImmediately: true })
  )
  // A server that has started again has no mark yet.
  if (reading.pollUnsafe() === undefined) yield* TestClock.adjust("1 second")
  const page = yield* Fiber.join(reading)
  if (page === undefined) return newReader
  const isRead = (key: string) => resources.some((name) => key.startsWith(`${name} `))
  const now = Record.filter(copy, (_, key) => isRead(key))
  const versions = { ...known }
  for (const item of page.items) {
    const { resource } = item
    if ("record" in item) {
      const key = `${resource} ${item.record.id}`
      const version = Number(item.record["version"])
      assert.isAtLeast(version, versions[key] ?? 0, `${key} is older than before`)
      now[key] = versions[key] = version
    } else if ("removed" in item) delete now[`${resource} ${item.removed}`]
    else {
      for (const held of Object.keys(versions)) {
        if (!held.startsWith(`${resource} `)) continue
        delete now[held]
        delete versions[held]
      }
    }
  }
  if (page.is_consistent) assert.deepStrictEqual(now, Model.committed(truth, resources))
  return { cursor: at.cursor, copy: now, known: versions }
})

const { end, write } = Model

/** Three transactions, one of them with two writes. */
const plans: ReadonlyArray<ReadonlyArray<(server: Model.Server) => Model.Server>> = [
  [(s) => write(s, 0, "invoice_lines a", false), (s) => end(s, 0, true)],
  [(s) => write(s, 1, "invoices b", true), (s) => write(s, 1, "invoices b", false), (s) => end(s, 1, true)],
  [(s) => write(s, 2, "invoice_lines c", true), (s) => end(s, 2, true)]
]

it.effect(
  "is_consistent is a state that the database had: every interleaving of three transactions",
  () =>
    Effect.gen(function* () {
      const model: Model.Model = { primary: Model.initial, standby: Model.initial }
      const feed = Model.feedOf(model)
      const known = new Set<string>()
      const left = [{ server: Model.initial, reader: newReader, plans }]
      for (let state = left.pop(); state !== undefined; state = left.pop()) {
        const { plans: rest, reader, server } = state
        const key = yield* json([server, reader, rest.map(({ length }) => length)])
        if (known.has(key)) continue
        known.add(key)
        model.primary = server
        left.push({ ...state, reader: yield* readPage(reader, feed, server, 2) })
        for (const [writer, [move, ...after]] of rest.entries()) {
          if (move !== undefined) left.push({ server: move(server), reader, plans: rest.with(writer, after) })
        }
      }
    }),
  long
)

const kinds = "write write write delete commit commit rollback page page page".split(" ")
const faults = ["catch up", "mark", "forget", "crash", "failover", "truncate", "choose"]

const Step = Schema.Struct({
  kind: Schema.Literals([...kinds, ...faults]),
  writer: Schema.Literals([0, 1, 2]),
  key: Schema.Literals(["invoices a", "invoices b", "invoice_lines a", "invoice_lines c"]),
  limit: Schema.Literals([1, 2, 3])
})
const steps = Arbitrary.array(Arbitrary.schema(Step), { minLength: 5, maxLength: 30 })

const play = Effect.fnUntraced(function* (history: ReadonlyArray<typeof Step.Type>) {
  const model: Model.Model = { primary: Model.initial, standby: Model.initial }
  const feed = Model.feedOf(model)
  let reader = newReader
  let chosen: ReadonlyArray<string> = Model.names
  let runs = 0
  const page = Effect.fnUntraced(function* (limit: number) {
    reader = yield* readPage(reader, feed, model.primary, limit, chosen)
  })
  for (const { key, kind, limit, writer } of history) {
    const { primary } = model
    if (kind === "write" || kind === "delete") model.primary = Model.write(primary, writer, key, kind === "delete")
    if (kind === "commit" || kind === "rollback") model.primary = Model.end(primary, writer, kind === "commit")
    if (kind === "page") yield* page(limit)
    if (kind === "catch up") model.standby = primary
    if (kind === "mark") model.primary = Model.mark(primary)
    if (kind === "forget") model.primary = Model.forget(primary)
    if (kind === "crash") model.primary = Model.restart(primary, ++runs)
    // Until its first mark has reached it, a standby of the new primary cannot tell that commits were lost.
    if (kind === "failover") model.standby = model.primary = Model.mark(Model.restart(model.standby, ++runs))
    if (kind === "truncate") model.primary = Model.truncate(primary, key.split(" ")[0] ?? "")
    if (kind === "choose") chosen = [Model.names, ["invoices"], ["invoice-lines"]][writer] ?? Model.names
  }
  chosen = Model.names
  for (const writer of [0, 1, 2]) model.primary = Model.end(model.primary, writer, true)
  for (let pages = 0; pages < 40; pages++) yield* page(2)
  assert.deepStrictEqual(reader.copy, Model.committed(model.primary, chosen))
})

const step = (
  kind: string,
  writer: 0 | 1 | 2 = 0,
  key: (typeof Step.Type)["key"] = "invoice_lines c",
  limit: 1 | 3 = 3
): typeof Step.Type => ({ kind, writer, key, limit })

it.effect("nothing is lost where a failover loses a removal that left a first load empty", () =>
  play([step("delete"), step("commit"), step("choose", 2), step("page"), step("failover")])
)

it.effect("a transaction that runs is read once it ends, also where a page ended in another", () => {
  const writes = [step("write", 0, "invoices a"), step("write", 1, "invoices b"), step("write", 1, "invoice_lines a")]
  const read = [step("write", 2), step("commit", 2), step("page"), step("page")]
  return play([...writes, ...read, step("commit", 1), step("page", 0, "invoices a", 1), step("commit")])
})

for (const { often, options } of tries({ few: 30, many: 120, size: 60, maxShrinks: 500 }))
  it.effect.prop(
    `any history of servers and a reader${often}`,
    { steps },
    ({ steps: history }) => play(history),
    options
  )
