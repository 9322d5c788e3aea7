/** Everything that is logged or traced, for tests of what must be in neither. */
import { inspect } from "node:util"
import { Context, Effect, Layer, Logger, References, Tracer } from "effect"

export class Recorded extends Context.Service<Recorded, { logs: Array<string>; spans: Array<Tracer.NativeSpan> }>()(
  "practice-data/test/support/Recorded"
) {
  static readonly layer = Layer.sync(Recorded, () => ({ logs: [], spans: [] }))

  /** Logs of every level and spans go into the record. */
  static readonly recording = Layer.unwrap(
    Effect.map(Recorded, ({ logs, spans }) =>
      Layer.mergeAll(
        Logger.layer([Logger.map(Logger.formatJson, (line) => logs.push(line))]),
        Layer.succeed(References.MinimumLogLevel, "All"),
        Layer.succeed(
          Tracer.Tracer,
          Tracer.make({
            span: (options) => {
              const span = new Tracer.NativeSpan(options)
              spans.push(span)
              return span
            }
          })
        )
      )
    )
  )
}

/** All that a span says. */
export const textOf = ({ name, attributes, events, status }: Tracer.NativeSpan) =>
  inspect({ name, attributes, events, status }, { depth: 20, maxStringLength: null })
