/** One fault from a healthy service to a healthy service, as somebody sees it who has nothing but what it tells. */
import { Array, Clock, Duration, Effect, Option, Ref, Schedule, type Semaphore } from "effect"
import { FetchHttpClient, HttpClient } from "effect/http"
import { NotTried } from "../Scenario.ts"
import type { Ground } from "../support/Ground.ts"
import type { Fault, Seen, Watched } from "./Fault.ts"
import type { Firing, Watcher } from "./Watcher.ts"

/** How soon a fault has to be seen, in seconds. */
export const bound = 15

/** How long it is looked for, and what else fires, in seconds. */
const patience = 25

/** How long alerts may take to be over when the fault is: the longest range is 2 minutes. */
const longestEnd = Duration.seconds(200)

/** Two scrapes and what the ranges of the queries need of them. */
const settling = Duration.seconds(12)

export interface Row {
  readonly name: string
  readonly done: string
  /** After how many seconds the alert fired; nothing where none was expected, or it did not. */
  readonly seconds: number | undefined
  readonly fired: ReadonlyArray<Firing>
  /** After how many seconds no alert fired any more. */
  readonly over: number | undefined
  readonly problems: ReadonlyArray<string>
}

const now = Effect.map(Clock.currentTimeMillis, (millis) => millis / 1000)

const healthOf = ({ operations }: Watched) =>
  HttpClient.get(`http://${operations}/health`).pipe(
    Effect.flatMap(({ text }) => text),
    Effect.timeout("5 seconds"),
    Effect.orElseSucceed(() => ""),
    Effect.provide(FetchHttpClient.layer)
  )

/** One of each name: the one that names the cause, where several do. */
const distinct = (firing: ReadonlyArray<Firing>, says: string) =>
  Array.dedupeWith([...firing.filter(({ summary }) => summary.includes(says)), ...firing], (a, b) => a.name === b.name)

/** What was not as it should be. */
const judge = (
  seen: Seen | undefined,
  {
    fired,
    health,
    lines,
    seconds
  }: { fired: ReadonlyArray<Firing>; health: string; lines: string; seconds: number | undefined }
) => {
  const right = [seen?.alert, ...(seen?.also ?? [])]
  const wrong = fired.filter(({ name }) => !right.includes(name)).map(({ name }) => `${name} fired too`)
  if (seen === undefined) return wrong
  const text = fired.find(({ name }) => name === seen.alert)?.summary ?? ""
  return [
    ...wrong,
    ...(seconds === undefined ? [`${seen.alert} did not fire`] : []),
    ...(seconds !== undefined && seconds > bound ? [`${seen.alert} took ${seconds.toFixed(1)} s`] : []),
    ...(seconds !== undefined && !text.includes(seen.says) ? [`it says "${text}"`] : []),
    ...(seen.log === undefined || seen.log.test(lines) ? [] : [`no line of the log has ${seen.log.source}`]),
    ...(seen.health === undefined || seen.health.test(health) ? [] : [`/health does not say ${seen.health.source}`])
  ]
}

/** Watches one fault. As many do so at once as there are permits; waiting for the end of the alerts takes none. */
export const watch = (fault: Fault, ground: Ground, watcher: Watcher, permits: Semaphore.Semaphore) =>
  Effect.gen(function* () {
    const fired = yield* Ref.make<ReadonlyArray<Firing>>([])
    const look = Effect.flatMap(watcher.firing(fault.name), (firing) =>
      Effect.as(
        Ref.update(fired, (all) => distinct([...all, ...firing], fault.seen?.says ?? "")),
        firing
      )
    )
    const every = Schedule.spaced("200 millis")

    const active = Effect.gen(function* () {
      const stand = yield* fault.stand(ground)
      yield* watcher.watch(
        fault.name,
        stand.services.map(({ operations }) => operations)
      )
      yield* Effect.sleep(settling)
      const before = yield* look
      if (before.length > 0) {
        return yield* new NotTried({ message: `Before the fault: ${before.map(({ summary }) => summary).join("; ")}` })
      }
      const outputs = stand.services.map(({ output }) => output().length)
      const begun = yield* Ref.make(yield* now)
      yield* Effect.forkScoped(
        Effect.andThen(
          stand.begin,
          Effect.flatMap(now, (at) => Ref.set(begun, at))
        )
      )
      const isRight = (firing: ReadonlyArray<Firing>) => firing.some(({ name }) => name === fault.seen?.alert)
      const right = yield* Effect.repeat(look, { until: isRight, schedule: every }).pipe(
        Effect.timeoutOption(Duration.seconds(patience))
      )
      const seconds = Option.isSome(right) ? (yield* now) - (yield* Ref.get(begun)) : undefined
      // What else fires comes at most two scrapes later.
      yield* Effect.repeat(look, { schedule: every }).pipe(Effect.timeoutOption("6 seconds"))
      const health = fault.seen?.health === undefined ? "" : yield* healthOf(stand.services[0])
      const lines = [
        ...stand.services.map(({ output }, index) => output().slice(outputs[index] ?? 0)),
        ...(stand.later ?? []).map(({ output }) => output())
      ].join("\n")
      yield* stand.heal
      return { seconds, health, lines, healed: yield* now }
    })

    const { healed, ...what } = yield* permits.withPermits(1)(Effect.timeout(active, "2 minutes"))
    const end = yield* Effect.repeat(watcher.firing(fault.name), {
      until: (firing) => firing.length === 0,
      schedule: every
    }).pipe(Effect.timeoutOption(longestEnd))
    const all = yield* Ref.get(fired)
    const isOver = Option.isSome(end)
    const made: Row = {
      name: fault.name,
      done: fault.done,
      seconds: what.seconds,
      fired: all,
      over: isOver ? (yield* now) - healed : undefined,
      problems: [...judge(fault.seen, { ...what, fired: all }), ...(isOver ? [] : ["alerts go on after it"])]
    }
    return made
  }).pipe(
    Effect.scoped,
    Effect.catch((error) =>
      Effect.succeed<Row>({
        name: fault.name,
        done: fault.done,
        seconds: undefined,
        fired: [],
        over: undefined,
        problems: [error.message]
      })
    )
  )
