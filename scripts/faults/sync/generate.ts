/** Draws histories. */
import { Effect, Random } from "effect"
import {
  Change,
  type Event,
  type History,
  type Isolation,
  type OnConflict,
  type Reader,
  type Stamp,
  Step
} from "./History.ts"
import type { Stand } from "./Stand.ts"
import { idOf, kinds, type Room } from "./Room.ts"

const below = (bound: number) => Random.nextIntBetween(0, bound, { halfOpen: true })

const chance = (probability: number) => Effect.map(Random.next, (drawn) => drawn < probability)

type Weighted<A> = readonly [weight: number, draw: Effect.Effect<A>]

/** One of several, by their weights. */
const oneOf = <A>(...choices: ReadonlyArray<Weighted<A>>): Effect.Effect<A> => {
  const draws = choices.flatMap(([weight, draw]) => Array.from({ length: weight }, () => draw))
  return Effect.flatten(Effect.orDie(Random.choice(draws)))
}

const always = <A>(weight: number, value: A): Weighted<A> => [weight, Effect.succeed(value)]

const limit = oneOf<number>(
  [6, Random.nextIntBetween(1, 4)],
  [3, Random.nextIntBetween(5, 20)],
  [1, Random.nextIntBetween(21, 1000)],
  always(1, 1000)
)

const isolation = oneOf<Isolation>(always(8, "read committed"), always(2, "repeatable read"), always(1, "serializable"))

const onConflict = oneOf<OnConflict>(always(1, "fail"), always(2, "do nothing"), always(2, "update"))

const event = oneOf<Event>(
  always(4, "crash"),
  always(1, "restart"),
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
  const organization = Effect.map(below(2), (drawn): Room["organization"] => (drawn === 0 ? 0 : 1))
  const shuffled = yield* Random.shuffle(kinds)
  const drawn = shuffled.slice(0, yield* Random.nextIntBetween(1, 3))
  const first = yield* Effect.forEach(drawn, (kind) => Effect.map(organization, (of) => ({ organization: of, kind })))
  // The same ids in the same table, for somebody else.
  const mirrored = (yield* chance(0.3)) ? first.slice(0, 1) : []
  const rooms = [
    ...first.slice(0, 2),
    ...mirrored.map((room): (typeof first)[number] => ({ ...room, organization: room.organization === 0 ? 1 : 0 }))
  ]
  const count = oneOf<number>([4, below(9)], [2, Random.nextIntBetween(9, 30)], always(1, 60))
  return yield* Effect.forEach(rooms, (room) => Effect.map(count, (of): Room => ({ ...room, count: of })))
})

const stamp = oneOf<Stamp>(
  always(3, "left"),
  always(5, "now()"),
  [2, Random.nextIntBetween(-5, 5)],
  [2, Random.nextIntBetween(-10_000, 10_000)],
  always(1, -86_400_000),
  always(1, 86_400_000)
)

const drawChange = (room: Room | undefined, isMultiple: boolean, isNested: boolean) => {
  const ids = Math.max(6, Math.ceil((room?.count ?? 0) * 1.2))
  const id = Effect.map(below(ids), (drawn) => idOf(drawn + 1))
  const idsUpTo = (most: number) =>
    Random.nextIntBetween(1, most).pipe(
      Effect.flatMap((count) => Effect.replicateEffect(id, count)),
      Effect.map((drawn) => [...new Set(drawn)].toSorted())
    )
  const few = idsUpTo(3)
  const many = idsUpTo(12)
  const either = oneOf<ReadonlyArray<string> | undefined>([3, many], always(1, undefined))
  return oneOf<Change>(
    [7, Effect.map(Effect.all({ ids: few, stamp }), Change.Update)],
    [3, Effect.map(Effect.all({ ids: either, stamp }), Change.Update)],
    [3, Effect.map(Effect.all({ ids: few, stamp, onConflict }), Change.Insert)],
    [2, Effect.map(Effect.all({ ids: many, stamp, onConflict }), Change.Insert)],
    [3, Effect.map(Effect.all({ ids: few }), Change.Delete)],
    [1, Effect.map(Effect.all({ ids: either }), Change.Delete)],
    [2, Effect.map(Effect.all({ ids: few, stamp }), Change.Replace)],
    [2, Effect.map(Effect.all({ from: id, to: id, stamp }), Change.Rename)],
    [4, Effect.map(Effect.all({ ids: few, isDelete: chance(0.2) }), Change.Pair)],
    [1, Effect.map(Effect.all({ ids: either }), Change.Touch)],
    [isNested ? 1 : 0, Effect.map(Effect.all({ ids: few, stamp }), Change.Nest)],
    [1, Effect.map(Effect.all({ id, stamp }), Change.Move)],
    always(1, Change.Truncate()),
    [isMultiple ? 1 : 0, Effect.map(Effect.all({ ids: few, stamp }), Change.Copy)],
    [room?.kind.isMarked === true ? 2 : 0, Effect.map(Effect.all({ ids: few, stamp }), Change.Mark)]
  )
}

/** Two readers of the resource of each room, and two of all resources. */
const readersIn = (rooms: ReadonlyArray<Room>) =>
  rooms.flatMap((room) => [false, false, true, true].map((isOfAll): Reader => ({ room, isOfAll })))

/**
 * The history of a number. On a stand with one session, none prepares transactions or copies.
 *
 * @param events the share of the histories in which servers crash, fail over, and are restored, where they are our own
 */
export const generate = (stand: Stand, seed: number, number: number, events: number): Effect.Effect<History> =>
  Effect.gen(function* () {
    const hasEvents = yield* chance(stand.servers === undefined ? 0 : events)
    const rooms = yield* drawRooms
    const isMultiple = !stand.isSingle
    const writers = isMultiple ? yield* Random.nextIntBetween(3, 5) : 1
    const readers = readersIn(rooms)

    const writer = below(writers)
    const reader = below(readers.length)
    const write = Effect.gen(function* () {
      const room = yield* below(rooms.length)
      const change = yield* drawChange(rooms[room], isMultiple, !hasEvents)
      return Step.Write({ writer: yield* writer, room, change })
    })
    const begin = Effect.all({ writer, isolation, isAsynchronous: chance(0.3), isReplicating: chance(0.1) })
    const wait = Effect.map(chance(0.02), (waits) => (waits ? 1 : 0))
    const step = oneOf<Step>(
      [40, write],
      [20, Effect.map(begin, Step.Begin)],
      [12, Effect.map(Effect.all({ writer }), Step.Commit)],
      [4, Effect.map(Effect.all({ writer }), Step.Rollback)],
      [4, Effect.map(Effect.all({ writer }), Step.Savepoint)],
      [4, Effect.map(Effect.all({ writer }), Step.RollbackTo)],
      [isMultiple ? 2 : 0, Effect.map(Effect.all({ writer }), Step.Prepare)],
      [isMultiple ? 4 : 0, Effect.map(Effect.all({ writer, isCommit: chance(0.7) }), Step.Finish)],
      [30, Effect.map(Effect.all({ reader, limit, isBeside: chance(0.35), wait }), Step.Page)],
      [8, Effect.map(Effect.all({ reader }), Step.Save)],
      [3, Effect.map(Effect.all({ reader }), Step.Kill)],
      [5, Effect.map(Effect.all({ reader, without: below(rooms.length + 1) }), Step.Choose)],
      [1, Effect.map(Effect.all({ millis: Random.nextIntBetween(1, 3) }), Step.Pause)]
    )
    const length = yield* Random.nextIntBetween(20, 60)
    const drawn = yield* Effect.replicateEffect(step, length)
    const steps = hasEvents ? yield* withEvents(drawn) : drawn
    const history: History = { seed, number, rooms, writers, readers, steps }
    return history
  }).pipe(Random.withSeed(`${seed} ${number}`))
