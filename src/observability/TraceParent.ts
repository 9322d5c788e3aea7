/** The header `traceparent` of W3C Trace Context, by which a trace goes on from one service to the next. */
import { Tracer } from "effect"

const shape = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/

/** A later version may append to the four fields. No client has a reason to append much. */
const longest = 256

const isZero = (id: string) => /^0+$/.test(id)

/** The span that a header names. Anything but a valid header is as if there were none, as the specification says. */
export const parse = (header: string | undefined): Tracer.ExternalSpan | undefined => {
  if (header === undefined || header.length > longest) return undefined
  const [, version = "ff", traceId = "", spanId = "", flags = "", rest] = shape.exec(header) ?? []
  if (version === "ff" || (version === "00" && rest !== undefined) || isZero(traceId) || isZero(spanId))
    return undefined
  return Tracer.externalSpan({ traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 })
}

/** The header of a span. */
export const format = ({ sampled, spanId, traceId }: Pick<Tracer.AnySpan, "traceId" | "spanId" | "sampled">): string =>
  `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`
