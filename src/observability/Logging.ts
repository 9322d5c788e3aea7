/**
 * The log of the service: every line in one format, through one writer, and so in order. In the formats for machines a
 * line is flat, with its fields in a fixed order, `time`, `level` and `message` first. No value can end the line or look
 * like another field.
 */
import { writeSync } from "node:fs"
import { inspect } from "node:util"
import {
  Cause,
  Context,
  DateTime,
  Effect,
  Layer,
  Logger,
  LogLevel,
  MutableRef,
  Predicate,
  Record,
  References
} from "effect"
import { printable } from "../process/Printed.ts"
import * as Metrics from "./Metrics.ts"
import * as Time from "./Time.ts"

const secret = /pda_|whsec_|[sr]k_(?:live|test)_|bearer|basic|:\/\/[^/\s]*@/i

/** Redacts what looks like a secret: the last line of defence, for texts from elsewhere. */
export const withoutSecrets = (text: string): string =>
  secret.test(text)
    ? text
        .replaceAll(/\b(pda_live_\w{4}|pda_[a-z]+_)\w+/gi, "$1…")
        .replaceAll(/\b(whsec_|[sr]k_(?:live|test)_)[\w+/=-]+/gi, "$1…")
        .replaceAll(/\b(bearer|basic)\s+[\w.+/=~-]+/gi, "$1 …")
        .replaceAll(/:\/\/[^/\s]*@/g, "://…@")
    : text

/** The fields of a line in their order. Undefined ones are left out. */
type Fields = Readonly<Record<string, string | number | boolean | undefined>>

const notAscii = /[^\x20-\x7e]/

const json = (value: Fields | string) => {
  // oxlint-disable-next-line effecttsgo/prefer-schema-over-json -- texts and numbers, on the path of each request
  const text = JSON.stringify(value)
  return notAscii.test(text) ? printable(text) : text
}

const simple = /^[\w./:@+,;()-]+$/

const logfmt = (fields: Fields) => {
  let line = ""
  for (const name in fields) {
    const value = fields[name]
    if (value === undefined) continue
    line += ` ${name}=${Predicate.isString(value) && !simple.test(value) ? json(value) : value}`
  }
  return line.slice(1)
}

/** The formats of a line, whose fields begin as `lineHead` says. */
export const formats = {
  /** One JSON object a line. */
  json: (fields) => `${json(fields)}\n`,
  /** `name=value`, with quotes where they are needed. */
  logfmt: (fields) => `${logfmt(fields)}\n`,
  /** The same fields for a person, after the time of day, and a cause with its stack below. */
  pretty: ({ cause, level, message, time, ...others }) => {
    const lines = [`${message} ${logfmt(others)}`.trimEnd(), ...(cause === undefined ? [] : String(cause).split("\n"))]
    return `[${time.slice(11, 23)}] ${level} ${lines.map(printable).join("\n")}\n`
  }
} satisfies Readonly<Record<string, (fields: Fields & ReturnType<typeof lineHead>) => string>>

export const lineHead = (time: number, level: LogLevel.LogLevel, message: string) => ({
  time: DateTime.formatIso(DateTime.makeUnsafe(time)),
  level: level.toUpperCase(),
  message
})

export interface LogOptions {
  readonly format: keyof typeof formats
  readonly level: LogLevel.LogLevel
}

/** A text of an error or of another program: bounded, and without secrets. */
export const safe = (text: string, longest = 2000): string =>
  withoutSecrets(text.length <= longest ? text : `${text.slice(0, longest)}… (${text.length} characters)`)

const shown = (value: unknown) =>
  Predicate.isString(value) ? value : inspect(value, { depth: 4, breakLength: Infinity, maxStringLength: 1000 })

const fieldValue = (value: unknown) => {
  if (value === undefined || value === null) return undefined
  return Predicate.isNumber(value) || Predicate.isBoolean(value) ? value : safe(shown(value))
}

/** The time in which lines gather, and the delay before a full pipe is tried again, in milliseconds. */
const pause = 20

/** The number of characters that are written at once, without waiting for more lines. */
const enough = 4096

/** The time that the last lines may take at the end of the process, in milliseconds. */
const grace = 500

/**
 * Makes a writer of log lines to a descriptor that does not block, or to a file. It never waits for its reader: what a full
 * pipe does not take stays in memory. Lines are written together a short while later, an urgent line at once with all
 * before it. `kill -9` can lose the lines of the last 20 milliseconds.
 *
 * @param capacity the number of characters that are kept while nobody reads; beyond it, lines are dropped and counted
 */
export const makeWriter = (fd: number, capacity = 4 * 1024 * 1024) => {
  // The lines after the rest of those that were taken before. A rest is left by an error alone.
  const [lines, rest] = [MutableRef.make(""), MutableRef.make<Uint8Array>(Buffer.alloc(0))]
  const timer = MutableRef.make<NodeJS.Timeout | undefined>(undefined)
  const dropped = MutableRef.make(0)

  /** Writes until nothing is left, or an error: EAGAIN of a full pipe, EPIPE without a reader, ENOSPC of a full disk. */
  const flush = () => {
    try {
      while (rest.current.length > 0 || lines.current !== "") {
        if (rest.current.length === 0) rest.current = Buffer.from(MutableRef.getAndSet(lines, ""))
        rest.current = rest.current.subarray(writeSync(fd, rest.current))
      }
      return undefined
    } catch (error) {
      return Predicate.hasProperty(error, "code") ? error.code : error
    }
  }

  const flushLater = () => {
    // oxlint-disable-next-line effecttsgo/global-timers -- loggers are called outside of fibers, and after the last one
    timer.current ??= setTimeout(() => {
      timer.current = undefined
      if (flush() !== undefined) flushLater()
    }, pause).unref()
  }

  return {
    /** Takes a line, with the newline at its end. An urgent line is written at once. */
    write: (line: string, isUrgent = false): void => {
      if (rest.current.length + lines.current.length + line.length > capacity) MutableRef.increment(dropped)
      else lines.current += line
      if (rest.current.length === 0 && (isUrgent || lines.current.length > enough)) flush()
      flushLater()
    },
    dropped: () => dropped.current,
    /** Writes the last lines, and waits for the reader for a moment: for the end of the process. */
    end: () => {
      const until = performance.now() + grace
      while (flush() === "EAGAIN" && performance.now() < until) {
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 5)
      }
    }
  }
}

export type Writer = ReturnType<typeof makeWriter>

export class LogWriter extends Context.Service<LogWriter, Writer>()("practice-data/observability/Logging/LogWriter") {
  /** Writes to standard output. The last lines are written when the process ends, unless it is killed. */
  static readonly layer = Layer.effect(
    LogWriter,
    Effect.gen(function* () {
      // Node's stream over it makes a pipe or a socket non-blocking.
      const writer = makeWriter(process.stdout.fd)
      process.once("exit", writer.end)
      const { read } = yield* Metrics.series
      yield* read("practice_data_log_lines_dropped_total", writer.dropped)
      return writer
    })
  )
}

/**
 * A logger of lines. The parts of a message after the first are its `detail`; annotations are fields of their own. A line
 * of a sampled trace has its ids. A person reads each line at once.
 */
const logger = (format: LogOptions["format"], { write }: Writer) =>
  Logger.make<unknown, void>(({ cause, date, fiber, logLevel, message }) => {
    const [first, ...details]: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
    const { span } = fiber.cache
    const line = formats[format]({
      ...lineHead(date.getTime(), logLevel, safe(shown(first))),
      detail: details.length === 0 ? undefined : safe(details.map(shown).join(" ")),
      ...Record.map(fiber.getRef(References.CurrentLogAnnotations), fieldValue),
      ...(cause.reasons.length > 0 && { cause: safe(Cause.pretty(cause)) }),
      ...(span?.sampled === true && { trace_id: span.traceId, span_id: span.spanId })
    })
    write(line, format === "pretty" || LogLevel.isGreaterThanOrEqualTo(logLevel, "Warn"))
  })

/** The logger and the level of everything that is built with this layer, over a writer. */
export const layerNoDeps = ({ format, level }: LogOptions) =>
  Layer.unwrap(
    Effect.map(LogWriter, (writer) =>
      Layer.merge(Logger.layer([logger(format, writer)]), Layer.succeed(References.MinimumLogLevel, level))
    )
  )

/** The same, to standard output. */
export const layer = (options: LogOptions) => Layer.provideMerge(layerNoDeps(options), LogWriter.layer)

/** The milliseconds in which lines of frequent events, such as failures in an outage, are bounded. */
const window = 10_000

/** Logs at most so many lines in ten seconds. The next line has the number of those before it in `left_out`. */
export const limited = (most: number) => {
  const state = MutableRef.make({ begun: -Infinity, lines: 0, leftOut: 0 })
  return (line: Effect.Effect<void>): Effect.Effect<void> =>
    Effect.flatMap(Time.monotonic, (now) => {
      const { leftOut, ...before } = state.current
      const { begun, lines } = now - before.begun < window ? before : { begun: now, lines: 0 }
      const isLeftOut = lines === most
      state.current = isLeftOut ? { begun, lines, leftOut: leftOut + 1 } : { begun, lines: lines + 1, leftOut: 0 }
      if (isLeftOut) return Effect.void
      return leftOut === 0 ? line : Effect.annotateLogs(line, "left_out", leftOut)
    })
}

/** Warns with a reason, at most so many times in ten seconds: by default once. */
export const limitedWarning = (message: string, most = 1) => {
  const limit = limited(most)
  return (reason: string): Effect.Effect<void> =>
    limit(Effect.annotateLogs(Effect.logWarning(message), "reason", reason))
}
