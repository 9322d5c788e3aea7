/**
 * The log of the service: every line in one format, through one writer, and so in order. In the formats for machines a
 * line is flat, with its fields in a fixed order, `time`, `level` and `message` first. No value can end the line or look
 * like another field.
 */
import { inspect } from "node:util"
import { Cause, DateTime, Effect, Layer, Logger, LogLevel, Predicate, Record, References } from "effect"
import { printable } from "../process/Printed.ts"
import { LogWriter, type Writer } from "./LogWriter.ts"

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

/** The lines of fields that begin as `headOf` says. */
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
