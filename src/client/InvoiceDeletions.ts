/** The sender of invoice deletions. */
import { isObject, stringify } from "./Json.ts"
import type { DeliveryReceipt, InvoiceDeletionsRequest } from "./generated/types.ts"
import { type ClientOptions, type RequestOptions, type Settings, settingsOf } from "./Options.ts"
import { send } from "./Send.ts"
import { keyOf, signed } from "./Signature.ts"

/** Options of the sender. */
export interface InvoiceDeletionsOptions extends ClientOptions {
  /** The organization that owns the invoices. */
  readonly organization: string
  /** Its signing secret, `whsec_...`, where it has one. It is shown nowhere. */
  readonly secret?: string | undefined
}

/** Options of a delivery. */
export interface SendOptions extends RequestOptions {
  /**
   * Identifies the delivery: 1 to 36 printable ASCII characters. A delivery that is sent again with the same key is
   * scheduled once. Keep the key with what you send where it has to survive a crash of yours.
   * @default a new UUID
   */
  readonly idempotencyKey?: string | undefined
}

const path = "/api/v1/invoice-deletions"

const checkedOrganization = (organization: string) => {
  if (/^[\x21-\x7e]{1,128}$/.test(organization)) return organization
  throw new TypeError("organization must have 1 to 128 visible ASCII characters")
}

// A header loses the spaces at its ends.
const checkedKey = (key: string) => {
  if (/^[\x20-\x7e]{1,36}$/.test(key) && key.trim() === key) return key
  throw new TypeError("idempotencyKey must have 1 to 36 printable ASCII characters, and no space at its ends")
}

const readReceipt = (json: unknown): DeliveryReceipt | undefined => (isReceipt(json) ? json : undefined)

const isReceipt = (json: unknown): json is DeliveryReceipt =>
  isObject(json) && typeof json["status"] === "string" && typeof json["task_id"] === "string"

/**
 * Sends deletions of invoices and invoice lines to the intake, signed where there is a secret.
 *
 * @example
 * const sender = new InvoiceDeletions({ baseUrl: "http://127.0.0.1:3000", organization: "org_oakridge" })
 * await sender.send({ invoices: [{ invoice_id: "invoice_oakridge_0001" }] }, { idempotencyKey: "delivery-1" })
 */
export class InvoiceDeletions {
  readonly #settings: Settings
  readonly #organization: string
  readonly #key: Uint8Array<ArrayBuffer> | undefined

  /** Throws where an option is not as it should be. Nothing is sent. */
  constructor(options: InvoiceDeletionsOptions) {
    this.#settings = settingsOf(options)
    this.#organization = checkedOrganization(options.organization)
    this.#key = options.secret === undefined ? undefined : keyOf(options.secret)
  }

  /**
   * Sends a delivery. The status of its receipt is `scheduled`, or `duplicate` where a delivery with this key was stored
   * before. Rejects with an `InvalidRequestError` where the key was used for something else. An error has the key as
   * `idempotencyKey`: after a 503, a timeout or a broken connection, send the delivery again with the same one.
   */
  async send(deletions: InvoiceDeletionsRequest, options: SendOptions = {}): Promise<DeliveryReceipt> {
    const idempotencyKey = checkedKey(options.idempotencyKey ?? crypto.randomUUID())
    const body = stringify(deletions)
    const key = this.#key
    const headers = async () => ({
      "x-organization-id": this.#organization,
      "idempotency-key": idempotencyKey,
      ...(key !== undefined && (await signed(key, idempotencyKey, body)))
    })
    return send(this.#settings, { path, idempotencyKey, body, headers, read: readReceipt }, options)
  }
}
