/**
 * Writes log lines to a file descriptor, in order, and never waits for who reads it: what a full pipe does not take stays
 * in a buffer, and past the bounds of that, lines are dropped and counted.
 *
 * A line is written at once where nothing was written a short while ago, and otherwise together with others. What
 * `kill -9` can lose are the lines of the last 100 milliseconds.
 */
import { writeSync } from "node:fs"
import { Context, Effect, Layer, Predicate } from "effect"
import * as Series from "./Series.ts"

/** How many lines are gathered, in milliseconds. */
const window = 100

/** How long to wait before what a full pipe did not take is offered again, in milliseconds. */
const pause = 20

/** A pipe takes so many bytes as a whole, so that lines of several processes do not get into each other. */
const atomic = 4096

/** How long the lines that are left at the end of the process may take, in milliseconds. */
const grace = 500

export interface Options {
  readonly fd: number
  /** How many characters are kept while nobody reads. */
  readonly capacity?: number
  /** The line that says how many lines were dropped before it. */
  readonly notice: (dropped: number) => string
}

/** Lines that are written together. */
interface Group {
  readonly bytes: Uint8Array
  readonly length: number
  readonly lines: number
  /** How many dropped lines it tells of. */
  readonly told: number
}

const codeOf = (error: unknown) => (Predicate.hasProperty(error, "code") ? error.code : undefined)

/** Sleeps without letting anything else happen. */
const block = (milliseconds: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)

export interface Writer {
  /** Takes a line, with the newline at its end. One that is urgent is written at once. */
  readonly write: (line: string, isUrgent?: boolean) => void
  /** How many lines were dropped so far. */
  readonly dropped: () => number
  /** Writes what is left, and waits for the reader for a moment: for the end of the process. */
  readonly end: () => void
}

/** A writer to a descriptor that does not block, or to a file. */
export const make = ({ capacity = 4 * 1024 * 1024, fd, notice }: Options): Writer => {
  const queue: Array<Group> = []
  // How many bytes of the first group are written.
  let offset = 0
  let queuedLength = 0
  let gathered = ""
  let gatheredLines = 0
  let gatheredTold = 0
  let timer: NodeJS.Timeout | undefined
  // The reader has not taken all that it was offered.
  let isStuck = false
  let isFull = false
  // Nobody takes anything: the reader has left, or the disk is full.
  let isGone = false
  // A line was cut off, so the next one begins with a newline.
  let isTorn = false
  let isEnding = false
  let untold = 0
  let dropped = 0

  const seal = () => {
    if (gathered === "") return
    const bytes = Buffer.from(isTorn ? `\n${gathered}` : gathered)
    queue.push({ bytes, length: gathered.length, lines: gatheredLines, told: gatheredTold })
    queuedLength += gathered.length
    gathered = ""
    gatheredLines = gatheredTold = 0
    isTorn = false
  }

  const gather = (line: string, told = 0) => {
    if (gathered !== "" && gathered.length + line.length > atomic) {
      if (isStuck) seal()
      else flush()
    }
    gathered += line
    if (told === 0) gatheredLines++
    gatheredTold += told
  }

  const tell = () => {
    if (untold === 0) return
    const told = untold
    untold = 0
    gather(notice(told), told)
  }

  const dropQueue = () => {
    for (const { lines, told } of queue) {
      untold += lines + told
      dropped += lines
    }
    isTorn = offset > 0
    queue.length = offset = queuedLength = 0
  }

  /** Writes as much as is taken. Whether that is all. */
  const flush = () => {
    seal()
    isStuck = false
    for (let group = queue[0]; group !== undefined && !isStuck; group = queue[0]) {
      try {
        offset += writeSync(fd, group.bytes, offset)
        isGone = false
        if (offset < group.bytes.length) continue
        queue.shift()
        queuedLength -= group.length
        offset = 0
      } catch (error) {
        const code = codeOf(error)
        isStuck = code === "EAGAIN"
        isGone = code !== "EAGAIN" && code !== "EINTR"
        if (isGone) dropQueue()
      }
    }
    if (queuedLength <= capacity / 2) isFull = false
    return !isStuck
  }

  const tick = () => {
    timer = undefined
    if (!isStuck && gathered === "") return
    flush()
    if (!isFull && !isGone) tell()
    rest()
  }

  const rest = () => {
    // oxlint-disable-next-line effecttsgo/global-timers -- loggers are called outside of fibers, and after the last one
    timer ??= setTimeout(tick, isStuck ? pause : window).unref()
  }

  return {
    write: (line, isUrgent = false) => {
      if (isFull || queuedLength + gathered.length + line.length > capacity) {
        isFull = true
        untold++
        dropped++
        return
      }
      tell()
      gather(line)
      if (!isStuck && (isUrgent || isEnding || timer === undefined)) flush()
      rest()
    },
    dropped: () => dropped,
    end: () => {
      const until = performance.now() + grace
      isEnding = true
      tell()
      while (!flush() && performance.now() < until) block(5)
    }
  }
}

/** What the log of this process is written with. */
export class LogWriter extends Context.Service<LogWriter, Writer>()("practice-data/observability/LogWriter") {
  /** Standard output. What is left when the process ends, in whatever way it can notice, is written then. */
  static readonly layer = (notice: Options["notice"]) =>
    Layer.effect(
      LogWriter,
      Effect.gen(function* () {
        // With its own stream over it, Node makes a pipe or a socket one that does not block.
        const writer = make({ fd: process.stdout.fd, notice })
        process.once("exit", writer.end)
        const { read } = yield* Series.current
        yield* read("practice_data_log_lines_dropped_total", writer.dropped)
        return writer
      })
    )
}
