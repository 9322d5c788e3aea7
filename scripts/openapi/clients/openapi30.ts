/** Types of OpenAPI 3.0, by a generator that reads no later version. */
import type { components as V1 } from "../generated/openapi-typescript-3.0/v1.js"
import type { components as V3 } from "../generated/openapi-typescript-3.0/v3.js"

type Is<A, B> = [A, B] extends [B, A] ? true : false

const amount: Is<V3["schemas"]["Charge"]["paid_amount"], number | null> = true
const received: Is<V1["schemas"]["DeliveryReceipt"]["received_at"], string | null> = true
const hasNoOutcome: null extends V3["schemas"]["DeletionTask"]["outcome"] ? true : false = true
void [amount, received, hasNoOutcome]
