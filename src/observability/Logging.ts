/** The log of the service: every line in one format, through one writer, and so in order. */
import { Console as NodeConsole } from "node:console"
import { Writable } from "node:stream"
import { inspect } from "node:util"
import { Cause, Clock, Console, Effect, Layer, Logger, LogLevel, Predicate, References } from "effect"
import { bounded, formats, type Format } from "./LogLine.ts"
import { LogWriter, type Writer } from "./LogWriter.ts"
import { withoutSecrets } from "./Secrets.ts"

/** The names of the formats. */
export type FormatName = keyof typeof formats | "pretty"

export interface Options {
  readonly format: FormatName
  /** The least severe messages to log. */
  readonly level: LogLevel.LogLevel
}

/** A text of an error or of another program: bounded, and without secrets. */
export const safe = (text: string): string => withoutSecrets(bounded(text))

/** What a cause says: its errors with their stacks. */
export const textOf = (cause: Cause.Cause<unknown>): string => safe(Cause.pretty(cause))

const shown = (value: unknown) =>
  Predicate.isString(value) ? value : inspect(value, { depth: 4, breakLength: Infinity, maxStringLength: 1000 })

const field = (format: Format, name: string, value: unknown) => {
  if (value === undefined || value === null) return ""
  return Predicate.isNumber(value) || Predicate.isBoolean(value)
    ? format.plain(name, value)
    : format.text(name, safe(shown(value)))
}

const messagesOf = (message: unknown): ReadonlyArray<unknown> => (Array.isArray(message) ? message : [message])

const isUrgent = (level: LogLevel.LogLevel) => LogLevel.isGreaterThanOrEqualTo(level, "Warn")

/**
 * A logger for machines. What follows the message of a line is its `detail`; annotations are fields of their own. A line
 * of a sampled trace has its ids.
 */
const structured = (format: Format, { write }: Writer) =>
  Logger.make<unknown, void>(({ cause, date, fiber, logLevel, message }) => {
    const [first, ...details] = messagesOf(message)
    let line = format.begin(date.getTime(), logLevel, safe(shown(first)))
    if (details.length > 0) line += format.text("detail", safe(details.map(shown).join(" ")))
    for (const [name, value] of Object.entries(fiber.getRef(References.CurrentLogAnnotations))) {
      line += field(format, name, value)
    }
    if (cause.reasons.length > 0) line += format.text("cause", textOf(cause))
    const { span } = fiber.cache
    if (span?.sampled === true) line += format.text("trace_id", span.traceId) + format.text("span_id", span.spanId)
    write(line + format.end, isUrgent(logLevel))
  })

/** A console that writes to standard output through the writer. A person reads it, so nothing is gathered. */
const consoleOver = ({ write }: Writer): Console.Console =>
  Object.assign(
    new NodeConsole({
      stdout: new Writable({
        decodeStrings: false,
        write: (text, _, done) => {
          write(withoutSecrets(String(text)), true)
          done()
        }
      }),
      stderr: process.stderr,
      colorMode: process.stdout.isTTY
    })
  )

const noticeOf = (format: FormatName, clock: Clock.Clock) => (dropped: number) => {
  const message = "Log lines were dropped: nobody read standard output"
  if (format === "pretty") return `${message} (lines: ${dropped})\n`
  const { begin, end, plain } = formats[format]
  return begin(clock.currentTimeMillisUnsafe(), "Warn", message) + plain("lines", dropped) + end
}

/** The loggers, the console and the level of everything that is built with this layer, over a writer. */
export const layerNoDeps = ({ format, level }: Options) =>
  Layer.unwrap(
    Effect.map(LogWriter, (writer) =>
      Layer.mergeAll(
        Logger.layer([format === "pretty" ? Logger.consolePretty() : structured(formats[format], writer)]),
        Layer.succeed(Console.Console, consoleOver(writer)),
        Layer.succeed(References.MinimumLogLevel, level)
      )
    )
  )

/** The same, to standard output. */
export const layer = (options: Options) =>
  layerNoDeps(options).pipe(
    Layer.provideMerge(
      Layer.unwrap(Effect.map(Clock.Clock, (clock) => LogWriter.layer(noticeOf(options.format, clock))))
    )
  )
