/** A fault that is watched through metrics, logs and health alone, and what has to be seen of it. */
import { Cause, Effect, Fiber, type Scope } from "effect"
import * as OwnPostgres from "../../../test/faults/support/OwnPostgres.ts"
import * as Process from "../../../test/blackbox/support/Process.ts"
import { NotTried } from "../Scenario.ts"
import * as Callers from "../support/Callers.ts"
import type * as Child from "../support/Child.ts"
import type { Ground } from "../support/Ground.ts"
import * as Service from "../support/Service.ts"

/** A service whose operators' port is watched. */
export interface Watched extends Process.Process {
  readonly port: number
  /** The host and port of its metrics. */
  readonly operations: string
}

/** A service under a little load, and the fault that can be done to it. */
export interface Stand {
  /** The first one tells the health. */
  readonly services: readonly [Watched, ...ReadonlyArray<Watched>]
  /** Those that the fault starts, in the place of others. */
  readonly later?: ReadonlyArray<Watched>
  readonly begin: Effect.Effect<void, NotTried, Scope.Scope>
  readonly heal: Effect.Effect<void, NotTried, Scope.Scope>
}

/** What has to be seen. */
export interface Seen {
  /** The alert, and a part of its text that names the cause. */
  readonly alert: string
  readonly says: string
  /** Alerts on what follows from it, which may fire too. */
  readonly also?: ReadonlyArray<string>
  /** What a line of the log says. */
  readonly log?: RegExp
  /** What the health of the service says. */
  readonly health?: RegExp
}

export interface Fault {
  readonly name: string
  readonly done: string
  /** Nothing, where no alert may fire. */
  readonly seen: Seen | undefined
  readonly stand: (ground: Ground) => Effect.Effect<Stand, NotTried, Scope.Scope>
}

const firstLinesOf = <E>(cause: Cause.Cause<E>) => Cause.pretty(cause).split("\n").slice(0, 3).join(" ").slice(0, 600)

/** What `/health` says of a dependency that has a problem. */
export const problemOf = (dependency: string) => new RegExp(`"${dependency}":\\{"status":"warn",[^}]*"output":"[^"]`)

/** Whatever goes wrong is a fault that was not tried. */
export const tried = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, NotTried, R> =>
  Effect.catchCause(effect, (cause) => Effect.fail(new NotTried({ message: firstLinesOf(cause) })))

/** A fault, whatever its parts may fail with. */
export const make = <E1, E2, E3>({
  stand,
  ...about
}: Omit<Fault, "stand"> & {
  readonly stand: (ground: Ground) => Effect.Effect<
    {
      readonly services: Stand["services"]
      readonly later?: Array<Watched>
      readonly begin: Effect.Effect<unknown, E2, Scope.Scope>
      readonly heal: Effect.Effect<unknown, E3, Scope.Scope>
    },
    E1,
    Scope.Scope
  >
}): Fault => ({
  ...about,
  stand: (ground) =>
    tried(stand(ground)).pipe(
      Effect.map(({ begin, heal, later = [], services }) => ({
        services,
        later,
        begin: Effect.asVoid(tried(begin)),
        heal: Effect.asVoid(tried(heal))
      }))
    )
})

/** Starts a service that is watched. It is gone when the scope closes. */
export const start = Effect.fnUntraced(function* (environment: Process.Environment) {
  const port = yield* OwnPostgres.freePort
  const service = yield* Service.start({ LOG_FORMAT: "json", OPERATIONS_PORT: String(port), ...environment })
  const watched: Watched = { ...service, operations: `127.0.0.1:${port}` }
  return watched
})

/** Starts a service on the ports of another one, which has ended. */
export const startAgain = ({ operations, port }: Watched, environment: Process.Environment) =>
  start({ ...environment, PORT: String(port), OPERATIONS_PORT: operations.split(":")[1] ?? "" })

/** Callers who ask until the scope closes. */
export const traffic = (
  port: number,
  requests: Callers.Plan["requests"],
  options: { readonly callers?: number; readonly pause?: number; readonly patience?: number } = {}
) =>
  Callers.start({
    ports: [port],
    requests,
    callers: options.callers ?? 4,
    pause: options.pause ?? 100,
    patience: options.patience ?? 15_000,
    keepAlive: true
  })

/** Something that goes on from the beginning of the fault to its end. */
export const meanwhile = <E, R>(work: Effect.Effect<unknown, E, R>) => {
  let fiber: Fiber.Fiber<unknown, E> | undefined
  return {
    begin: Effect.map(Effect.forkScoped(work), (forked) => {
      fiber = forked
    }),
    heal: Effect.suspend(() => (fiber === undefined ? Effect.void : Fiber.interrupt(fiber)))
  }
}

/** Callers from the beginning of the fault, when they are there, to its end. */
export const callersOf = (...given: Parameters<typeof traffic>) => {
  let stop: Effect.Effect<unknown, Child.NoReport> = Effect.void
  return {
    begin: Effect.map(traffic(...given), (callers) => {
      stop = callers.stop
    }),
    heal: Effect.suspend(() => stop)
  }
}

/** What is asked of a service that is well. */
export const everyday = [Service.search("charges", { limit: 10 }), Service.search("clinics", {}, "harbor")] as const

/** Nothing has to be healed. */
export const healed = Effect.void
