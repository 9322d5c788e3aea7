/** The sender of invoice deletions. */
import type { DeliveryReceipt, InvoiceDeletionsRequest } from "./generated/types.ts"
import { type ClientOptions, printable, type RequestOptions, type Settings, settingsOf } from "./Options.ts"
import { send } from "./Transport.ts"
import { type Answer, isText, reading } from "./Response.ts"

export interface InvoiceDeletionsOptions extends ClientOptions {
  /** The organization that owns the invoices. */
  readonly organization: string
  /** Its signing secret, `whsec_...`, if it has one. Never in a message or an inspected object. */
  readonly secret?: string | undefined
}

export interface SendOptions extends RequestOptions {
  /**
   * Identifies the delivery: 1 to 36 printable ASCII characters, by default a new UUID. A delivery that is sent again with
   * the same key is scheduled once: to survive a crash of yours, keep the key with the deletions.
   */
  readonly idempotencyKey?: string | undefined
}

const path = "/api/v1/invoice-deletions"

/** The bytes of a signing secret. An error does not show the secret. */
const bytesOf = (secret: string): Uint8Array<ArrayBuffer> => {
  const text = secret.replace(/^whsec_/, "")
  if (text === "" || !/^(?:[A-Za-z\d+/]{4})*(?:[A-Za-z\d+/]{2}==|[A-Za-z\d+/]{3}=)?$/.test(text)) {
    throw new TypeError("secret must be whsec_ and base64")
  }
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0))
}

/** The headers that sign a body now, by Standard Webhooks, with the Web Crypto of any runtime. */
const signed = async (secret: Uint8Array<ArrayBuffer>, id: string, body: string) => {
  // oxlint-disable-next-line eslint/no-restricted-properties -- a date
  const timestamp = String(Math.floor(Date.now() / 1000))
  const algorithm = { name: "HMAC", hash: "SHA-256" }
  const key = await crypto.subtle.importKey("raw", secret, algorithm, false, ["sign"])
  const content = new TextEncoder().encode(`${id}.${timestamp}.${body}`)
  const signature = new Uint8Array(await crypto.subtle.sign("HMAC", key, content))
  return {
    "webhook-id": id,
    "webhook-timestamp": timestamp,
    "webhook-signature": `v1,${btoa(String.fromCharCode(...signature))}`
  }
}

const read = reading<DeliveryReceipt>({ status: isText, task_id: isText })

/**
 * Sends deletions of invoices and invoice lines to the intake, signed if there is a secret.
 *
 * @example
 * const sender = new InvoiceDeletions({ baseUrl: "http://127.0.0.1:3000", organization: "org_oakridge" })
 * await sender.send({ invoices: [{ invoice_id: "invoice_oakridge_0001" }] }, { idempotencyKey: "delivery-1" })
 */
export class InvoiceDeletions {
  readonly #settings: Settings
  readonly #organization: string
  readonly #secret: Uint8Array<ArrayBuffer> | undefined

  /** Throws if an option is invalid. Nothing is sent. */
  constructor(options: InvoiceDeletionsOptions) {
    this.#settings = settingsOf(options)
    this.#organization = printable("organization", options.organization, 128)
    this.#secret = options.secret === undefined ? undefined : bytesOf(options.secret)
  }

  /**
   * Sends a delivery. The status of its receipt is `scheduled`, or `duplicate` if a delivery with this key was stored
   * before. Rejects with an `InvalidRequestError` if the key was used for something else. An error has the key as
   * `idempotencyKey`: after a 503, a timeout or a broken connection, send the delivery again with the same one.
   */
  send(deletions: InvoiceDeletionsRequest, options: SendOptions = {}): Answer<DeliveryReceipt> {
    const { idempotencyKey = crypto.randomUUID() } = options
    const secret = this.#secret
    const headers = async (body: string) => ({
      "x-organization-id": this.#organization,
      "idempotency-key": printable("idempotencyKey", idempotencyKey, 36),
      ...(secret !== undefined && (await signed(secret, idempotencyKey, body)))
    })
    return send(this.#settings, { path, idempotencyKey, body: deletions, headers, read }, options)
  }
}
