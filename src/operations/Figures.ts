/** What the processes of this host say of themselves. */
import { Context, type Effect } from "effect"
import type * as Recent from "../observability/Recent.ts"

/** What a process says of itself. Plain JSON. */
export interface ProcessSnapshot {
  /** Which of the processes of this host, from 1. */
  readonly process: number
  readonly pid: number
  /** In milliseconds since 1970. */
  readonly startedAt: number
  readonly version: string
  readonly roles: ReadonlyArray<string>
  /** In the text format of Prometheus. */
  readonly metrics: string
  readonly recent: Recent.Snapshot
  readonly ready: boolean
  /** What is wrong with each thing that the process depends on, by its name; null where nothing is. */
  readonly checks: Readonly<Record<string, string | null>>
  /** The resident memory, in bytes. */
  readonly memory: number
  /** How late timers were at most, of 99 %, in milliseconds. */
  readonly eventLoopDelay: number
}

/** A process that does not answer. */
export interface Silent {
  readonly process: number
  readonly pid: number | null
  /** Why nothing is known of it. */
  readonly silent: string
}

export class Figures extends Context.Service<
  Figures,
  {
    readonly all: Effect.Effect<ReadonlyArray<ProcessSnapshot | Silent>>
  }
>()("practice-data/operations/Figures") {}
