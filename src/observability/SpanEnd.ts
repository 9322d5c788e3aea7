/**
 * What a span says of how it ended. The exporter would write down the words of every error, and those of a database may
 * quote a row: a span gets the kind of an error, the code of a database, and of a bug where it happened.
 */
import { Cause, Exit, Predicate, type Tracer } from "effect"
import { isSqlError } from "effect/sql/SqlError"

/** An attribute that says of a span that it failed, and why: a kind of error, of a few. */
export const errorType = "error.type"

const longestKind = 64
const longestStack = 4096

/** Whether it is the client's fault, which is no failure of this service. */
const isOfClient = (error: unknown) =>
  Predicate.hasProperty(error, "httpApiStatus") && Number(error.httpApiStatus) < 500

const kindOf = (error: unknown): string => {
  if (isSqlError(error)) return error.reason._tag
  const named = Predicate.hasProperty(error, "_tag") ? error._tag : Predicate.isError(error) ? error.name : typeof error
  return String(named).slice(0, longestKind)
}

const codeOf = (error: unknown) => {
  const cause = isSqlError(error) ? error.reason.cause : undefined
  const code = Predicate.hasProperty(cause, "code") ? cause.code : undefined
  return Predicate.isString(code) && /^[0-9A-Z]{5}$/.test(code) ? code : undefined
}

/** Where a bug happened: the lines of its stack, without its message. */
const stackOf = (defect: unknown) =>
  Predicate.isError(defect)
    ? (defect.stack ?? "")
        .split("\n")
        .filter((line) => /^\s+at /.test(line))
        .join("\n")
        .slice(0, longestStack)
    : ""

/** What an exporter writes down of a failure. */
const plain = (kind: string, stack = "") =>
  Exit.fail({ name: kind, message: kind, stack: `${kind}\n${stack}`.trimEnd() })

/** Says of a span how it ended, and returns the end to export. */
export const describe = (span: Tracer.Span, exit: Exit.Exit<unknown, unknown>): Exit.Exit<unknown, unknown> => {
  const attribute = span.attributes.get(errorType)
  const said = Predicate.isString(attribute) ? attribute : undefined
  if (Exit.isSuccess(exit) || Cause.hasInterruptsOnly(exit.cause)) return said === undefined ? exit : plain(said)
  const reason = exit.cause.reasons.find(({ _tag }) => _tag !== "Interrupt")
  const error =
    reason === undefined || reason._tag === "Interrupt"
      ? undefined
      : reason._tag === "Die"
        ? reason.defect
        : reason.error
  if (reason?._tag === "Fail" && isOfClient(error)) return Exit.void
  const kind = kindOf(error)
  if (said === undefined) span.attribute(errorType, kind)
  const code = codeOf(error)
  if (code !== undefined) span.attribute("db.response.status_code", code)
  return plain(kind, reason?._tag === "Die" ? stackOf(error) : "")
}
