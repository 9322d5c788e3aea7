/**
 * Live reads of the payment processor account that is connected to a clinic. Contract: section 4.1, "Live processor
 * read". All six have the same request and response; the contract shows balance transactions.
 */
import { Schema } from "effect"
import { HttpApiEndpoint, HttpApiGroup, OpenApi } from "effect/http-api"
import {
  ClinicNotConnected,
  ClinicRequired,
  ClinicUnknown,
  CredentialStoreDown,
  CursorNotFound,
  OrgMismatch,
  OutOfRange,
  ProcessorBusy,
  ProcessorDown,
  ProcessorNotConfigured,
  RecordStoreDown,
  responses,
  ServiceBusy
} from "./Errors.ts"
import * as Filter from "./records/Filter.ts"
import type { Stability } from "./records/Resource.ts"
import { integer, organization } from "./records/Search.ts"
import { faults, refuse } from "./Faults.ts"

/** The greatest page that the processor hands out. */
export const maximumLimit = 100

const epochSeconds = (description: string) =>
  Filter.optional(
    integer(description, { minimum: 0, maximum: Number.MAX_SAFE_INTEGER }).check(
      Schema.makeFilter((value: number) =>
        value < 0
          ? refuse({ type: "greater_than_equal", msg: "Input should be greater than or equal to 0" })
          : value > Number.MAX_SAFE_INTEGER
            ? refuse({
                type: "less_than_equal",
                msg: `Input should be less than or equal to ${Number.MAX_SAFE_INTEGER}`
              })
            : undefined
      )
    )
  )

/** A page of a clinic's connected account. */
const PspSearchRequest = Schema.Struct({
  clinic: Schema.NullOr(Filter.Text("The clinic whose connected account is read.")).check(
    Schema.makeFilter((clinic) => (clinic === null ? refuse(faults.missing) : undefined))
  ),
  organization,
  limit: Filter.optional(
    integer("How many objects to return at most. More than 100 is read as 100.", { minimum: 1, default: 100 })
  ),
  starting_after: Filter.optional(Filter.Text("The id of the last object of the page before.")),
  created_gte: epochSeconds("Only objects created at or after this, in seconds since 1970."),
  created_lte: epochSeconds("Only objects created at or before this, in seconds since 1970.")
}).annotate({ identifier: "PspSearchRequest" })
export type PspSearchRequest = typeof PspSearchRequest.Type

const PspPage = Schema.Struct({
  data: Schema.Array(Schema.Record(Schema.String, Schema.Json)).annotate({
    description: "The processor's objects as it gives them, newest first."
  }),
  has_more: Schema.Boolean.annotate({ description: "Whether there is another page." })
}).annotate({ identifier: "PspPage", description: "A page of objects of the payment processor." })

const group = <const Kind extends string>(kind: Kind, stability: Stability) =>
  HttpApiGroup.make(`psp-${kind}` as const).add(
    HttpApiEndpoint.post("search", `/psp-${kind}/search`, {
      payload: PspSearchRequest,
      success: PspPage,
      error: responses(
        OrgMismatch,
        OutOfRange,
        ClinicRequired,
        ClinicUnknown,
        ClinicNotConnected,
        CursorNotFound,
        RecordStoreDown,
        CredentialStoreDown,
        ProcessorDown,
        ProcessorNotConfigured,
        ProcessorBusy,
        ServiceBusy
      )
    }).annotateMerge(
      OpenApi.annotations({
        summary: `Read ${kind.replaceAll("-", " ")}`,
        description:
          "Reads live from the payment processor account connected to one clinic, newest first. The next page is the one that starts after the id of the last object; there is no offset. A clinic without a connected account is refused with 400. When the processor does not answer for an account within 8 seconds, fails several times in a row, or 20 reads of the organization are in flight, the response is 503, and `Retry-After` (1 to 60 seconds) says when to try again.",
        override: stability === "provisional" ? { "x-provisional": true } : undefined
      })
    )
  )

/** The kinds of object that can be read, each with its group of the API. */
export const pspGroups = {
  payments: group("payments", "provisional"),
  charges: group("charges", "provisional"),
  refunds: group("refunds", "provisional"),
  disputes: group("disputes", "provisional"),
  payouts: group("payouts", "provisional"),
  "balance-transactions": group("balance-transactions", "contract")
}
export type PspKind = keyof typeof pspGroups
