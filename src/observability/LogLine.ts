/**
 * A log line in the formats for machines: fields in a fixed order, `time`, `level` and `message` first. Whatever a value
 * is, it cannot end the line or look like another field.
 */
import { DateTime, type LogLevel } from "effect"
import { printable } from "../process/Printed.ts"

/** How the fields of a line are written. */
export interface Format {
  /** The line up to its message. */
  readonly begin: (time: number, level: LogLevel.LogLevel, message: string) => string
  /** A field. The text may be anything. */
  readonly text: (name: string, value: string) => string
  /** A field of a number or a boolean. */
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

let second = -1
let beginning = ""

/** The time as in ISO 8601, in UTC with milliseconds. */
export const isoTime = (time: number): string => {
  const whole = Math.floor(time / 1000)
  if (whole !== second) {
    second = whole
    beginning = DateTime.formatIso(DateTime.makeUnsafe(whole * 1000)).slice(0, 20)
  }
  const milliseconds = Math.floor(time) - whole * 1000
  return `${beginning}${String(milliseconds).padStart(3, "0")}Z`
}

const levels: Readonly<Record<LogLevel.LogLevel, string>> = {
  All: "ALL",
  Fatal: "FATAL",
  Error: "ERROR",
  Warn: "WARN",
  Info: "INFO",
  Debug: "DEBUG",
  Trace: "TRACE",
  None: "NONE"
}

/** One JSON object a line. */
export const json: Format = {
  begin: (time, level, message) => `{"time":"${isoTime(time)}","level":"${levels[level]}","message":${quoted(message)}`,
  text: (name, value) => `,"${name}":${quoted(value)}`,
  plain: (name, value) => `,"${name}":${value}`,
  end: "}\n"
}

/** `name=value`, with quotes where they are needed. */
export const logfmt: Format = {
  begin: (time, level, message) => `time=${isoTime(time)} level=${levels[level]} message=${bare(message)}`,
  text: (name, value) => ` ${name}=${bare(value)}`,
  plain: (name, value) => ` ${name}=${value}`,
  end: "\n"
}

export const formats = { json, logfmt } as const

const longest = 2000

/** At most so many characters of a text. */
export const bounded = (text: string, most = longest): string =>
  text.length <= most ? text : `${text.slice(0, most)}… (${text.length} characters)`
