/** The process of the callers: see Callers.ts. */
import { Deferred, Effect, Ref } from "effect"
import { noAnswer, Plan, Report, type Sample } from "./Callers.ts"
import * as Child from "./Child.ts"
import * as Http1 from "./Http1.ts"

const now = () => performance.timeOrigin + performance.now()

/** Opens a connection to the first port that does not refuse. */
const connector = (ports: Plan["ports"]) => {
  let current = 0
  const attempt = (left: number): Effect.Effect<Http1.Connection, Http1.Refused> =>
    Effect.suspend(() => Http1.open(ports[current % ports.length] ?? 0)).pipe(
      Effect.catch((refused) => {
        current += 1
        return left > 1 ? attempt(left - 1) : Effect.fail(refused)
      })
    )
  return attempt(ports.length)
}

const work = Effect.fnUntraced(function* (plan: Plan, stopped: Deferred.Deferred<void>) {
  const samples: Array<Sample> = []
  const close = plan.keepAlive ? {} : { connection: "close" }
  const requests = plan.requests.map((request) =>
    Http1.bytesOf({ ...request, headers: { ...request.headers, ...close } })
  )
  const unfinished = new Set<Omit<Sample, "took" | "status">>()
  let sent = 0

  const caller = Effect.gen(function* () {
    const connect = connector(plan.ports)
    const open = yield* Ref.make<Http1.Connection | undefined>(undefined)
    const fresh = Effect.tap(connect, (made) => Ref.set(open, made))
    const connection = Effect.gen(function* () {
      const held = yield* Ref.get(open)
      return held?.isOpen() === true ? held : yield* fresh
    })
    const drop = Effect.flatMap(Ref.getAndSet(open, undefined), (held) => held?.close ?? Effect.void)
    const status = (request: number) =>
      connection.pipe(
        Effect.flatMap(({ ask }) => ask(requests[request] ?? Buffer.alloc(0))),
        Effect.map((reply) => reply.status),
        Effect.catchTags({
          Refused: () => Effect.delay(Effect.succeed(noAnswer.refused), "5 millis"),
          Lost: () => Effect.as(drop, noAnswer.lost)
        }),
        Effect.timeoutOrElse({ duration: plan.patience, orElse: () => Effect.as(drop, noAnswer.hung) })
      )
    const turn = Effect.gen(function* () {
      const request = sent % requests.length
      sent += 1
      const asked = { at: now(), request }
      unfinished.add(asked)
      const answered = yield* status(request)
      unfinished.delete(asked)
      samples.push({ ...asked, took: now() - asked.at, status: answered })
      if (plan.pause !== undefined) yield* Effect.sleep(plan.pause)
    })
    yield* Effect.whileLoop({ while: () => sent < (plan.total ?? Infinity), body: () => turn, step: () => undefined })
    yield* drop
  })

  const all = Effect.all(
    Array.from({ length: plan.callers }, () => caller),
    { concurrency: "unbounded", discard: true }
  )
  const end = plan.during === undefined ? Effect.never : Effect.sleep(plan.during)
  yield* Effect.raceAllFirst([all, Deferred.await(stopped), end])
  return [
    ...samples,
    ...Array.from(unfinished, (asked) => ({ ...asked, took: now() - asked.at, status: noAnswer.unfinished }))
  ]
})

Child.main({ plan: Plan, report: Report }, work)
