/**
 * Large bodies: their memory, and the worker thread that prunes them, so that hostile ones do not block the event loop.
 * Both are apart for holders of keys, for organizations that sign, and for strangers.
 */
import { fileURLToPath } from "node:url"
import { Worker } from "node:worker_threads"
import { Data, Effect, PartitionedSemaphore, RcRef, Scope } from "effect"
import type { Headers } from "effect/http"
import { moduleBeside, ownMemory } from "../process/Package.ts"
import type { Pruned, Wanted } from "./JsonPruning.ts"
import type { Answer, Job } from "./LargeBodyThread.ts"

/** The groups of senders, the most important first. */
const groups = ["key", "signed", "stranger"] as const

/** The sender of a body: its group, and its organization, which shares with the others of the group. */
export interface Sender {
  readonly group: (typeof groups)[number]
  readonly owner: string
}

/** Too many large bodies are in memory, or the thread ran out of it. */
export class LargeBodiesBusy extends Data.TaggedError("LargeBodiesBusy") {}

export const busy = new LargeBodiesBusy()

/** Bytes of each body that do not count: 2,000 connections have 16 MiB. */
export const uncounted = 8 * 1024

/** Frees a piece of a body at once: such garbage would pile up until V8 collects it. Nobody may use it any more. */
export const free = ({ buffer, byteLength }: Uint8Array): void => {
  if (byteLength === buffer.byteLength && buffer instanceof ArrayBuffer) buffer.transfer(0)
}

/** True if a body is sent in chunks, without its length, or announces a length that counts. */
export const mayBeLarge = ({ headers }: { readonly headers: Headers.Headers }): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > uncounted

/**
 * The memory for the bodies of a group, in bytes. An owner takes at most half of it. Received bytes count, not announced
 * ones: a client that announces much and sends little takes nothing.
 */
export class Budget {
  readonly #held = new Map<string, number>()
  readonly #most: number
  #left: number

  constructor(bytes: number) {
    this.#most = bytes / 2
    this.#left = bytes
  }

  get left(): number {
    return this.#left
  }

  /** Takes some bytes, or nothing where they are too many. Negative ones are given back. */
  take(owner: string, bytes: number): boolean {
    const held = (this.#held.get(owner) ?? 0) + bytes
    if (bytes > 0 && (held > this.#most || bytes > this.#left)) return false
    if (held > 0) this.#held.set(owner, held)
    else this.#held.delete(owner)
    this.#left -= bytes
    return true
  }
}

export type Budgets = Readonly<Record<Sender["group"], Budget>>

const mebibyte = 1024 * 1024

/** Three budgets, of 8 MiB each in 256 MiB of memory. */
export const budgetsOf = (memory: number): Budgets => {
  const bytes = Math.min(32 * mebibyte, Math.max(8 * mebibyte, memory / 32))
  return { key: new Budget(bytes), signed: new Budget(bytes), stranger: new Budget(bytes) }
}

/** The budgets of this process. */
export const budgets: Budgets = budgetsOf(ownMemory())

const turn = () => PartitionedSemaphore.makeUnsafe<string>({ permits: 1 })

/** A job of each group at a time, in turns of owners. */
const turns = { key: turn(), signed: turn(), stranger: turn() }

/** A running thread, and the callers that wait for it by the ids of their jobs. */
interface Thread {
  readonly worker: Worker
  readonly waiting: Map<number, (pruned: Effect.Effect<Pruned, LargeBodiesBusy>) => void>
}

const start = Effect.sync((): Thread => {
  const worker = new Worker(moduleBeside(import.meta.url, "LargeBodyThread"), {
    // Sources are compiled already.
    execArgv: ["-r", fileURLToPath(new URL("../preload.cjs", import.meta.url))],
    resourceLimits: { maxOldGenerationSizeMb: 48, maxYoungGenerationSizeMb: 8 }
  })
  const waiting: Thread["waiting"] = new Map()
  worker.on("message", ({ id, pruned }: Answer) => waiting.get(id)?.(Effect.succeed(pruned)))
  worker.on("error", (cause) => {
    Effect.runFork(RcRef.invalidate(thread))
    const failed = Effect.andThen(Effect.logError("The thread for large bodies failed", cause), Effect.fail(busy))
    for (const resume of waiting.values()) resume(failed)
  })
  return { worker, waiting }
})

/** The thread of this process. It ends after a second without a job, and gives its memory back. */
const thread: RcRef.RcRef<Thread> = RcRef.make({
  acquire: Effect.acquireRelease(start, ({ worker }) => Effect.promise(() => worker.terminate())),
  idleTimeToLive: "1 second"
}).pipe(Effect.provideService(Scope.Scope, Scope.makeUnsafe()), Effect.runSync)

let lastId = 0

const run = (job: Omit<Job, "id">) =>
  Effect.flatMap(RcRef.get(thread), ({ waiting, worker }) =>
    Effect.callback<Pruned, LargeBodiesBusy>((resume) => {
      const id = ++lastId
      waiting.set(id, (pruned) => {
        waiting.delete(id)
        if (waiting.size === 0) worker.unref()
        resume(pruned)
      })
      worker.ref()
      worker.postMessage({ ...job, id } satisfies Job, [job.body.buffer])
    })
  )

/** Prunes a body in the thread, in turn. The body is gone afterwards. */
export const prune = (
  { group, owner }: Sender,
  body: Uint8Array<ArrayBuffer>,
  wanted: Wanted
): Effect.Effect<Pruned, LargeBodiesBusy> =>
  run({ rank: groups.indexOf(group), body, wanted }).pipe(
    Effect.scoped,
    Effect.uninterruptible,
    PartitionedSemaphore.withPermit(turns[group], owner)
  )
