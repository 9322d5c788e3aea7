/**
 * Writes log lines to a file descriptor, in order, and never waits for its reader: what a full pipe does not take stays
 * in memory, and past a bound, lines are dropped and counted. Lines are written together a short while later, an urgent
 * line at once with all before it. `kill -9` can lose the lines of the last 20 milliseconds.
 */
import { writeSync } from "node:fs"
import { Context, Effect, Layer, Predicate } from "effect"
import * as Series from "./Series.ts"

/** The time in which lines gather, and the delay before a full pipe is tried again, in milliseconds. */
const pause = 20

/** The number of characters that are written at once, without waiting for more lines. */
const enough = 4096

/** The time that the last lines may take at the end of the process, in milliseconds. */
const grace = 500

const block = (milliseconds: number) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, milliseconds)

/**
 * Makes a writer to a descriptor that does not block, or to a file.
 *
 * @param capacity the number of characters that are kept while nobody reads
 */
export const make = (fd: number, capacity = 4 * 1024 * 1024) => {
  // Lines after the rest of those that were taken before.
  let lines = ""
  let rest: Uint8Array = Buffer.alloc(0)
  let timer: NodeJS.Timeout | undefined
  // The code of the last error: EAGAIN of a full pipe, EPIPE without a reader, ENOSPC of a full disk.
  let failure: unknown
  let dropped = 0
  let isEnding = false

  /** Writes until nothing is left, or an error, whose code it returns. */
  const flush = () => {
    failure = undefined
    try {
      while (rest.length > 0 || lines !== "") {
        if (rest.length === 0) [rest, lines] = [Buffer.from(lines), ""]
        rest = rest.subarray(writeSync(fd, rest))
      }
    } catch (error) {
      failure = Predicate.hasProperty(error, "code") ? error.code : error
    }
    return failure
  }

  const flushLater = () => {
    if (isEnding) return
    // oxlint-disable-next-line effecttsgo/global-timers -- loggers are called outside of fibers, and after the last one
    timer ??= setTimeout(() => {
      timer = undefined
      if (flush() !== undefined) flushLater()
    }, pause).unref()
  }

  return {
    /** Takes a line, with the newline at its end. An urgent line is written at once. */
    write: (line: string, isUrgent = false): void => {
      if (rest.length + lines.length + line.length > capacity) dropped++
      else lines += line
      if (failure === undefined && (isUrgent || isEnding || lines.length > enough)) flush()
      flushLater()
    },
    dropped: () => dropped,
    /** Writes the last lines, and waits for the reader for a moment: for the end of the process. Nothing is tried again. */
    end: () => {
      const until = performance.now() + grace
      isEnding = true
      // oxlint-disable-next-line effecttsgo/global-timers -- see above
      clearTimeout(timer)
      while (flush() === "EAGAIN" && performance.now() < until) block(5)
    }
  }
}

export type Writer = ReturnType<typeof make>

export class LogWriter extends Context.Service<LogWriter, Writer>()("practice-data/observability/LogWriter") {
  /** Writes to standard output. The last lines are written when the process ends, unless it is killed. */
  static readonly layer = Layer.effect(
    LogWriter,
    Effect.gen(function* () {
      // Node's stream over it makes a pipe or a socket non-blocking.
      const writer = make(process.stdout.fd)
      process.once("exit", writer.end)
      const { read } = yield* Series.current
      yield* read("practice_data_log_lines_dropped_total", writer.dropped)
      return writer
    })
  )
}
