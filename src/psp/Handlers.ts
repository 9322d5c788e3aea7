/** The endpoints of the live reads. */
import { Duration, Effect, Layer, Record } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { CurrentOrganization } from "../api/Authorization.ts"
import { ClinicRequired, OutOfRange, ProcessorDown } from "../api/Errors.ts"
import { maximumLimit, pspGroups, type PspKind } from "../api/Psp.ts"
import { note } from "../observability/RequestFacts.ts"
import { PspReads } from "./PspReads.ts"

const kindHandlers = (kind: PspKind) =>
  HttpApiBuilder.group(
    DataApi,
    `psp-${kind}`,
    Effect.fnUntraced(function* (handlers) {
      const { read } = yield* PspReads
      return handlers.handleAll({
        search: Effect.fnUntraced(
          function* ({ payload }) {
            yield* CurrentOrganization.check(payload)
            const { clinic, limit } = payload
            if ((limit ?? maximumLimit) < 1) return yield* new OutOfRange({ detail: "limit must be at least 1" })
            if (clinic.trim() === "") return yield* new ClinicRequired()
            const { data, hasMore } = yield* read(kind, clinic, {
              limit: Math.min(limit ?? maximumLimit, maximumLimit),
              startingAfter: payload.starting_after ?? undefined,
              createdGte: payload.created_gte ?? undefined,
              createdLte: payload.created_lte ?? undefined
            })
            return yield* HttpServerResponse.json({ data, has_more: hasMore })
          },
          // Nested more deeply than any object of the processor.
          Effect.catchTag("HttpBodyError", () => Effect.fail(ProcessorDown.retryAfter(Duration.zero))),
          Effect.tapErrorTag("ProcessorBusy", () => note({ refusal: "load" })),
          Effect.tapErrorTag("ProcessorDown", () => note({ refusal: "processor" }))
        )
      })
    })
  )

export const layer = Layer.mergeAll(Layer.empty, ...Record.keys(pspGroups).map(kindHandlers))
