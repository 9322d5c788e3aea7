/**
 * The signature of a delivery (Standard Webhooks), which an organization may require of its senders. An organization
 * without a signing secret has its deliveries taken as they come, unless the service requires signatures of all.
 */
import { Context } from "effect"
import { HttpApiMiddleware } from "effect/http-api"
import { responseInvalid, responses, Unauthorized } from "./Errors.ts"

/** The sender of a delivery. `unavailable`: the secrets could not be read, so nothing may be accepted. */
export class Sender extends Context.Service<Sender, { readonly verification: "passed" | "unavailable" }>()(
  "practice-data/api/SignedDelivery/Sender"
) {}

/** Refuses a delivery whose headers are not as they should be, or that is not signed as required. */
export class SignedDelivery extends HttpApiMiddleware.Service<SignedDelivery, { provides: Sender }>()(
  "practice-data/api/SignedDelivery",
  { error: [...responses(Unauthorized), responseInvalid] }
) {}
