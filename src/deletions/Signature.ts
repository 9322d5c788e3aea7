/** Verifies the signature of a delivery (Standard Webhooks), and says what does not fit. */
import { createHmac } from "node:crypto"
import { Redacted } from "effect"
import { Webhook } from "standardwebhooks"
import type { DeliveryHeaders } from "../api/IntakeApi.ts"

/** How far the time of a signature may be from now, in seconds. */
const tolerance = 300

/**
 * What is wrong with the headers of a signature, whatever the secret; nothing where all of them may be good.
 *
 * @param now seconds since 1970
 */
export const faultOf = (headers: DeliveryHeaders, now: number): string | undefined => {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "", "webhook-signature": signature = "" } = headers
  if (id === "") return "webhook-id is missing"
  if (id !== headers["idempotency-key"]) return "webhook-id is not the Idempotency-Key"
  if (timestamp === "") return "webhook-timestamp is missing"
  const signedAt = parseInt(timestamp, 10)
  if (Number.isNaN(signedAt)) return "webhook-timestamp is not a number"
  if (signedAt < now - tolerance) return `webhook-timestamp is too old: more than ${tolerance} seconds ago`
  if (signedAt > now + tolerance) return `webhook-timestamp is too new: more than ${tolerance} seconds ahead`
  if (signature.trim() === "") return "webhook-signature is missing"
  if (!signature.split(" ").some((each) => /^v1,./.test(each))) {
    return "webhook-signature is malformed: it has no signature of version v1"
  }
  return undefined
}

/** What is said where no secret fits. */
export const mismatch = "webhook-signature does not match"

/** Of the library, but for the hash, which takes it thirty times as long. */
class NativeWebhook extends Webhook {
  private readonly secret: Uint8Array

  constructor(secret: string) {
    super(secret)
    this.secret = Buffer.from(secret.replace(/^whsec_/, ""), "base64")
  }

  override sign(id: string, timestamp: Date, payload: string | Buffer): string {
    const signed = createHmac("sha256", this.secret)
      .update(`${id}.${Math.floor(timestamp.getTime() / 1000)}.`)
      .update(payload)
    return `v1,${signed.digest("base64")}`
  }
}

/** Whether a body is signed with a secret. One that is no secret signs nothing. */
export const isSignedWith = (secret: Redacted.Redacted, headers: DeliveryHeaders, body: Uint8Array): boolean => {
  const { "webhook-id": id = "", "webhook-timestamp": timestamp = "", "webhook-signature": signature = "" } = headers
  try {
    new NativeWebhook(Redacted.value(secret)).verify(
      Buffer.from(body.buffer, body.byteOffset, body.byteLength),
      { "webhook-id": id, "webhook-timestamp": timestamp, "webhook-signature": signature },
      { jsonParse: false }
    )
    return true
  } catch {
    return false
  }
}
