/** Draws histories. */
import { Array, Effect, Random } from "effect"
import {
  Change,
  type Event,
  type History,
  type Isolation,
  type Manner,
  type OnConflict,
  type Reader,
  type Stamp,
  Step
} from "./History.ts"
import { clinics, idOf, invoices, type Kind, lines, logs, pets, products, type Room } from "./Room.ts"

const below = (bound: number) => Random.nextIntBetween(0, bound, { halfOpen: true })

const chance = (probability: number) => Effect.map(Random.next, (drawn) => drawn < probability)

type Weighted<A> = readonly [weight: number, draw: Effect.Effect<A>]

/** One of several, by their weights. */
const oneOf = <A>(...choices: Array.NonEmptyReadonlyArray<Weighted<A>>) =>
  Effect.flatMap(below(Array.reduce(choices, 0, (sum, [weight]) => sum + weight)), (drawn) => {
    let rest = drawn
    for (const [weight, draw] of choices) {
      if (rest < weight) return draw
      rest -= weight
    }
    return choices[0][1]
  })

const always = <A>(weight: number, value: A): Weighted<A> => [weight, Effect.succeed(value)]

const limit = oneOf<number>(
  [6, Random.nextIntBetween(1, 4)],
  [3, Random.nextIntBetween(5, 20)],
  [1, Random.nextIntBetween(21, 1000)],
  always(1, 1000)
)

const isolation = oneOf<Isolation>(always(8, "read committed"), always(2, "repeatable read"), always(1, "serializable"))

const onConflict = oneOf<OnConflict>(always(1, "fail"), always(2, "do nothing"), always(2, "update"))

/** What differs between the databases that histories are played on. */
export interface Options {
  /** Whether sessions write at once, prepare transactions, and copy. Otherwise there is one. */
  readonly isMultiple: boolean
  /** Whether there is a second service, which reads a replica. */
  readonly hasReplica: boolean
  /** The share of the histories in which servers crash, fail over, and are restored. */
  readonly events: number
}

const event = oneOf<Event>(
  always(4, "crash"),
  always(1, "restart"),
  always(1, "crash of the standby"),
  always(4, "failover"),
  always(2, "restore"),
  always(1, "restore into a new timeline")
)

/** Adds events to steps, with what comes before them: a lag of the standby, or a copy. */
const withEvents = Effect.fnUntraced(function* (given: ReadonlyArray<Step>) {
  let steps = given
  const insert = Effect.fnUntraced(function* (happening: Event, end: number) {
    const at = yield* below(end)
    steps = [...steps.slice(0, at), Step.Befall({ event: happening }), ...steps.slice(at)]
    return at
  })
  for (let left = yield* Random.nextIntBetween(1, 3); left > 0; left--) {
    const drawn = yield* event
    const at = yield* insert(drawn, steps.length + 1)
    if (drawn.startsWith("restore")) yield* insert("copy", at + 1)
    if (drawn === "failover" && (yield* chance(0.8))) yield* insert("cut off the standby", at + 1)
  }
  return steps
})

const drawRooms = Effect.gen(function* () {
  const organization = Effect.map(below(2), (drawn): 0 | 1 => (drawn === 0 ? 0 : 1))
  const kinds = yield* Random.shuffle<Kind>([pets, products, clinics, logs, invoices, lines])
  const count = yield* Random.nextIntBetween(1, 3)
  const first: ReadonlyArray<Room> = yield* Effect.forEach(kinds.slice(0, count), (kind) =>
    Effect.map(organization, (of) => ({ organization: of, kind }))
  )
  // The same ids in the same table, for somebody else.
  const mirrored = (yield* chance(0.3)) ? first.slice(0, 1) : []
  return [
    ...first.slice(0, 2),
    ...mirrored.map((room): Room => ({ ...room, organization: room.organization === 0 ? 1 : 0 }))
  ]
})

const stamp = oneOf<Stamp>(
  always(3, "left"),
  always(5, "now()"),
  [2, Random.nextIntBetween(-5, 5)],
  [2, Random.nextIntBetween(-10_000, 10_000)],
  always(1, -86_400_000),
  always(1, 86_400_000)
)

const optional = (ids: ReadonlyArray<string> | undefined) => (ids === undefined ? {} : { ids })

const drawChange = (ids: number, kind: Kind, { isMultiple }: Options, isNested: boolean) => {
  const id = Effect.map(below(ids), (drawn) => idOf(drawn + 1))
  const idsUpTo = (most: number) =>
    Effect.flatMap(Random.nextIntBetween(1, most), (count) =>
      Effect.map(Effect.all(Array.makeBy(count, () => id)), (drawn) => Array.dedupe(drawn).toSorted())
    )
  const few = idsUpTo(3)
  const many = idsUpTo(12)
  const either = oneOf<ReadonlyArray<string> | undefined>([3, many], always(1, undefined))
  return oneOf<Change>(
    [7, Effect.map(Effect.all({ ids: few, stamp }), Change.Update)],
    [
      3,
      Effect.map(Effect.all({ drawn: either, stamp }), ({ drawn, stamp: at }) =>
        Change.Update({ ...optional(drawn), stamp: at })
      )
    ],
    [3, Effect.map(Effect.all({ ids: few, stamp, onConflict }), Change.Insert)],
    [2, Effect.map(Effect.all({ ids: many, stamp, onConflict }), Change.Insert)],
    [3, Effect.map(few, (drawn) => Change.Delete({ ids: drawn }))],
    [1, Effect.map(either, (drawn) => Change.Delete(optional(drawn)))],
    [2, Effect.map(Effect.all({ ids: few, stamp }), Change.Replace)],
    [2, Effect.map(Effect.all({ from: id, to: id, stamp }), Change.Rename)],
    [4, Effect.map(Effect.all({ ids: few, isDelete: chance(0.2) }), Change.Pair)],
    [1, Effect.map(either, (drawn) => Change.Touch(optional(drawn)))],
    [isNested ? 1 : 0, Effect.map(Effect.all({ ids: few, stamp }), Change.Nest)],
    [1, Effect.map(Effect.all({ id, stamp }), Change.Move)],
    always(1, Change.Truncate()),
    [isMultiple ? 1 : 0, Effect.map(Effect.all({ ids: few, stamp }), Change.Copy)],
    [kind.isMarked === true ? 2 : 0, Effect.map(Effect.all({ ids: few, stamp }), Change.Mark)]
  )
}

const readersOf = (room: number, { hasReplica }: Options) =>
  Effect.map(Effect.all([chance(0.5), chance(0.5)]), (drawn): ReadonlyArray<Reader> => {
    const [ofOne, ofAll] = drawn.map((isReplica): ReadonlyArray<Manner> => [
      "changes",
      ...(hasReplica ? [isReplica ? ("replica" as const) : ("both" as const)] : [])
    ])
    return [
      ...(ofOne ?? []).map((manner) => ({ manner, room, isOfAll: false })),
      ...(ofAll ?? []).map((manner) => ({ manner, room, isOfAll: true }))
    ]
  })

/** The history of a number. */
export const generate = (seed: number, number: number, options: Options): Effect.Effect<History> =>
  Effect.gen(function* () {
    const hasEvents = yield* chance(options.events)
    const rooms = yield* drawRooms
    const counts = yield* Effect.forEach(rooms, () =>
      oneOf<number>([4, below(9)], [2, Random.nextIntBetween(9, 30)], always(1, 60))
    )
    const writers = options.isMultiple ? yield* Random.nextIntBetween(3, 5) : 1
    const readers = (yield* Effect.forEach(rooms, (_, at) => readersOf(at, options))).flat()

    const writer = below(writers)
    const reader = below(readers.length)
    const write = Effect.gen(function* () {
      const at = yield* below(rooms.length)
      const room = rooms[at] ?? { organization: 0, kind: pets }
      const ids = Math.max(6, Math.ceil((counts[at] ?? 0) * 1.2))
      const change = yield* drawChange(ids, room.kind, options, !hasEvents)
      return Step.Write({ writer: yield* writer, room: at, change })
    })
    const begin = Effect.gen(function* () {
      return Step.Begin({
        writer: yield* writer,
        isolation: yield* isolation,
        isAsynchronous: yield* chance(0.3),
        isReplicating: yield* chance(0.1)
      })
    })
    const wait = Effect.map(chance(0.02), (waits) => (waits ? 1 : 0))
    const step = oneOf<Step>(
      [40, write],
      [20, begin],
      [12, Effect.map(writer, (of) => Step.Commit({ writer: of }))],
      [4, Effect.map(writer, (of) => Step.Rollback({ writer: of }))],
      [4, Effect.map(writer, (of) => Step.Savepoint({ writer: of }))],
      [4, Effect.map(writer, (of) => Step.RollbackTo({ writer: of }))],
      [options.isMultiple ? 2 : 0, Effect.map(writer, (of) => Step.Prepare({ writer: of }))],
      [options.isMultiple ? 4 : 0, Effect.map(Effect.all({ writer, isCommit: chance(0.7) }), Step.Finish)],
      [30, Effect.map(Effect.all({ reader, limit, isBeside: chance(0.35), wait }), Step.Page)],
      [8, Effect.map(reader, (of) => Step.Save({ reader: of }))],
      [3, Effect.map(reader, (of) => Step.Kill({ reader: of }))],
      [5, Effect.map(Effect.all({ reader, without: below(rooms.length + 1) }), Step.Choose)],
      [1, Effect.map(Random.nextIntBetween(1, 3), (millis) => Step.Pause({ millis }))]
    )
    const length = yield* Random.nextIntBetween(20, 60)
    const drawn = yield* Effect.all(Array.makeBy(length, () => step))
    const steps = hasEvents ? yield* withEvents(drawn) : drawn
    const history: History = { seed, number, rooms, counts, writers, readers, steps }
    return history
  }).pipe(Random.withSeed(`${seed} ${number}`))
