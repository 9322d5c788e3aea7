/**
 * The log of the service: every line in one format, through one writer, and so in order. In the formats for machines a
 * line is flat, with its fields in a fixed order, `time`, `level` and `message` first. No value can end the line or look
 * like another field.
 */
import { Console as NodeConsole } from "node:console"
import { Writable } from "node:stream"
import { inspect } from "node:util"
import { Cause, Console, DateTime, Effect, Layer, Logger, LogLevel, Predicate, References } from "effect"
import { printable } from "../process/Printed.ts"
import { LogWriter, type Writer } from "./LogWriter.ts"

const secret = /pda_|whsec_|[sr]k_(?:live|test)_|bearer|basic|:\/\/[^/\s]*@/i

/** A text without what has the form of a secret: a last line of defence, for texts that are not of this service. */
export const withoutSecrets = (text: string): string =>
  secret.test(text)
    ? text
        .replaceAll(/\b(pda_live_\w{4}|pda_[a-z]+_)\w+/gi, "$1…")
        .replaceAll(/\b(whsec_|[sr]k_(?:live|test)_)[\w+/=-]+/gi, "$1…")
        .replaceAll(/\b(bearer|basic)\s+[\w.+/=~-]+/gi, "$1 …")
        .replaceAll(/:\/\/[^/\s]*@/g, "://…@")
    : text

export interface Format {
  /** The line up to its message. */
  readonly begin: (time: number, level: LogLevel.LogLevel, message: string) => string
  readonly text: (name: string, value: string) => string
  readonly plain: (name: string, value: number | boolean) => string
  readonly end: string
}

const notAscii = /[^\x20-\x7e]/

const quoted = (text: string) => {
  // oxlint-disable-next-line effecttsgo/prefer-schema-over-json -- a string, on the path of each request
  const json = JSON.stringify(text)
  return notAscii.test(json) ? printable(json) : json
}

const simple = /^[\w./:@+,;()-]+$/

const bare = (text: string) => (simple.test(text) ? text : quoted(text))

const isoTime = (time: number) => DateTime.formatIso(DateTime.makeUnsafe(time))

const logfmt: Format = {
  begin: (time, level, message) => `time=${isoTime(time)} level=${level.toUpperCase()} message=${bare(message)}`,
  text: (name, value) => ` ${name}=${bare(value)}`,
  plain: (name, value) => ` ${name}=${value}`,
  end: "\n"
}

export const formats = {
  /** One JSON object a line. */
  json: {
    begin: (time, level, message) =>
      `{"time":"${isoTime(time)}","level":"${level.toUpperCase()}","message":${quoted(message)}`,
    text: (name, value) => `,"${name}":${quoted(value)}`,
    plain: (name, value) => `,"${name}":${value}`,
    end: "}\n"
  },
  /** `name=value`, with quotes where they are needed. */
  logfmt,
  /** The same fields for a person, after the time of day. */
  pretty: {
    ...logfmt,
    begin: (time, level, message) => `[${isoTime(time).slice(11, 23)}] ${level.toUpperCase()} ${message}`
  }
} satisfies Readonly<Record<string, Format>>

export interface Options {
  readonly format: keyof typeof formats
  readonly level: LogLevel.LogLevel
}

/** A text of an error or of another program: bounded, and without secrets. */
export const safe = (text: string, longest = 2000): string =>
  withoutSecrets(text.length <= longest ? text : `${text.slice(0, longest)}… (${text.length} characters)`)

const shown = (value: unknown) =>
  Predicate.isString(value) ? value : inspect(value, { depth: 4, breakLength: Infinity, maxStringLength: 1000 })

const field = (format: Format, name: string, value: unknown) => {
  if (value === undefined || value === null) return ""
  if (Predicate.isNumber(value) || Predicate.isBoolean(value)) return format.plain(name, value)
  return format.text(name, safe(shown(value)))
}

/**
 * A logger for machines. The parts of a message after the first are its `detail`; annotations are fields of their own. A
 * line of a sampled trace has its ids.
 */
const structured = (format: Format, { write }: Writer) =>
  Logger.make<unknown, void>(({ cause, date, fiber, logLevel, message }) => {
    const [first, ...details]: ReadonlyArray<unknown> = Array.isArray(message) ? message : [message]
    let line = format.begin(date.getTime(), logLevel, safe(shown(first)))
    if (details.length > 0) line += format.text("detail", safe(details.map(shown).join(" ")))
    for (const [name, value] of Object.entries(fiber.getRef(References.CurrentLogAnnotations))) {
      line += field(format, name, value)
    }
    if (cause.reasons.length > 0) line += format.text("cause", safe(Cause.pretty(cause)))
    const { span } = fiber.cache
    if (span?.sampled === true) line += format.text("trace_id", span.traceId) + format.text("span_id", span.spanId)
    write(line + format.end, LogLevel.isGreaterThanOrEqualTo(logLevel, "Warn"))
  })

/** A console that writes to standard output through the writer, at once: a person reads it. */
const consoleOver = ({ write }: Writer): Console.Console => {
  const stdout = new Writable({
    decodeStrings: false,
    write: (text, _, done) => {
      write(withoutSecrets(String(text)), true)
      done()
    }
  })
  return Object.assign(new NodeConsole({ stdout, stderr: process.stderr, colorMode: process.stdout.isTTY }))
}

const noticeOf =
  ({ begin, end, plain }: Format) =>
  (dropped: number, time: number) =>
    begin(time, "Warn", "Log lines were dropped: nobody read standard output") + plain("lines", dropped) + end

/** The loggers, the console and the level of everything that is built with this layer, over a writer. */
export const layerNoDeps = ({ format, level }: Options) =>
  Layer.unwrap(
    Effect.map(LogWriter, (writer) =>
      Layer.mergeAll(
        Logger.layer([
          format === "pretty"
            ? Logger.consolePretty({ formatDate: (date) => date.toISOString() })
            : structured(formats[format], writer)
        ]),
        Layer.succeed(Console.Console, consoleOver(writer)),
        Layer.succeed(References.MinimumLogLevel, level)
      )
    )
  )

/** The same, to standard output. */
export const layer = (options: Options) =>
  Layer.provideMerge(layerNoDeps(options), LogWriter.layer(noticeOf(formats[options.format])))
