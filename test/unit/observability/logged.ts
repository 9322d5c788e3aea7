/** What a server in this process logs: its access log and all other lines. */
import { Effect, Layer, Schema } from "effect"
import * as Logging from "../../../src/observability/Logging.ts"
import { LogWriter } from "../../../src/observability/LogWriter.ts"
import { accessLog, RequestObservers } from "../../../src/observability/RequestFacts.ts"

// oxlint-disable-next-line effecttsgo/schema-sync -- a line that is no JSON fails the test
export const parse = Schema.decodeSync(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown)))

/** A log that keeps its lines, and everything that is to be logged. */
export const logged = (options: Logging.Options) => {
  const lines: Array<string> = []
  const writer = Layer.succeed(LogWriter, {
    write: (line) => void lines.push(line),
    dropped: () => 0,
    end: () => undefined
  })
  const observers = Layer.effect(
    RequestObservers,
    Effect.map(accessLog(options), (observe) => [observe])
  )
  return { lines, layer: observers.pipe(Layer.provideMerge(Logging.layerNoDeps(options)), Layer.provide(writer)) }
}
