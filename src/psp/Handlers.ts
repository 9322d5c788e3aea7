/** Answers the live reads of the payment processor. */
import { Effect, Layer } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiBuilder } from "effect/http-api"
import { DataApi } from "../api/DataApi.ts"
import { ClinicRequired, OutOfRange } from "../api/Errors.ts"
import { checkOrganization, identified } from "../keys/CheckOrganization.ts"
import { maximumLimit, type PspSearchRequest } from "../api/Psp.ts"
import type { Kind } from "./PspPage.ts"
import { PspReads } from "./PspReads.ts"

const limitOf = ({ limit }: PspSearchRequest) =>
  (limit ?? maximumLimit) < 1
    ? Effect.fail(new OutOfRange({ detail: "limit must be at least 1" }))
    : Effect.succeed(Math.min(limit ?? maximumLimit, maximumLimit))

const clinicOf = ({ clinic }: PspSearchRequest) =>
  clinic === null || clinic.trim() === "" ? Effect.fail(new ClinicRequired()) : Effect.succeed(clinic)

const handlersOf = (kind: Kind) =>
  Effect.map(PspReads, (psp) => ({
    search: Effect.fnUntraced(function* ({ payload }: { readonly payload: PspSearchRequest }) {
      yield* checkOrganization(payload)
      const limit = yield* limitOf(payload)
      const clinic = yield* clinicOf(payload)
      const { data, hasMore } = yield* psp.read(kind, clinic, {
        limit,
        startingAfter: payload.starting_after ?? undefined,
        createdGte: payload.created_gte ?? undefined,
        createdLte: payload.created_lte ?? undefined
      })
      return HttpServerResponse.jsonUnsafe({ data, has_more: hasMore })
    }, identified)
  }))

export const layer = Layer.mergeAll(
  HttpApiBuilder.group(DataApi, "psp-payments", (all) => Effect.map(handlersOf("payments"), (h) => all.handleAll(h))),
  HttpApiBuilder.group(DataApi, "psp-charges", (all) => Effect.map(handlersOf("charges"), (h) => all.handleAll(h))),
  HttpApiBuilder.group(DataApi, "psp-refunds", (all) => Effect.map(handlersOf("refunds"), (h) => all.handleAll(h))),
  HttpApiBuilder.group(DataApi, "psp-disputes", (all) => Effect.map(handlersOf("disputes"), (h) => all.handleAll(h))),
  HttpApiBuilder.group(DataApi, "psp-payouts", (all) => Effect.map(handlersOf("payouts"), (h) => all.handleAll(h))),
  HttpApiBuilder.group(DataApi, "psp-balance-transactions", (all) =>
    Effect.map(handlersOf("balance-transactions"), (h) => all.handleAll(h))
  )
)
