/** Everything that is logged or traced, for tests of what must be in neither. */
import { inspect } from "node:util"
import { Context, Effect, Layer, Logger, References, Tracer } from "effect"

/** A tracer that keeps its spans. */
export const keeping = () => {
  const spans: Array<Tracer.NativeSpan> = []
  const tracer = Tracer.make({
    span: (options) => {
      const span = new Tracer.NativeSpan(options)
      spans.push(span)
      return span
    }
  })
  return { spans, tracer }
}

export class Recorded extends Context.Service<Recorded, { logs: Array<string> } & ReturnType<typeof keeping>>()(
  "practice-data/test/support/Recorded"
) {
  static readonly layer = Layer.sync(Recorded, () => ({ logs: [], ...keeping() }))

  /** Logs of every level and spans go into the record. */
  static readonly recording = Layer.unwrap(
    Effect.map(Recorded, ({ logs, tracer }) =>
      Layer.mergeAll(
        Logger.layer([Logger.map(Logger.formatJson, (line) => logs.push(line))]),
        Layer.succeed(References.MinimumLogLevel, "All"),
        Layer.succeed(Tracer.Tracer, tracer)
      )
    )
  )
}

/** All that a span says. */
export const textOf = ({ name, attributes, events, status }: Tracer.NativeSpan) =>
  inspect({ name, attributes, events, status }, { depth: 20, maxStringLength: null })
