/** Reads response bodies of the PSP within limits of memory. */
import { Data } from "effect"

/** The body is larger than one body may be. */
export class BodyTooLarge extends Data.TaggedError("BodyTooLarge") {}

/** The bodies being read are larger than they may be together. */
export class BodiesTooLarge extends Data.TaggedError("BodiesTooLarge") {}

/** How many bytes are read at most, of one body and of all at once. */
export interface Limits {
  readonly each: number
  readonly together: number
}

/** A reader of bodies. It rejects as soon as a body is past a limit, and then closes its socket. */
export const make = ({ each, together }: Limits) => {
  let held = 0
  // oxlint-disable-next-line effecttsgo/async-function -- part of a `fetch`, which is what the client of Stripe takes
  return async (response: Response): Promise<Uint8Array<ArrayBuffer>> => {
    const { body, headers } = response
    if (body === null) return new Uint8Array()
    if (Number(headers.get("content-length") ?? 0) > each) {
      await body.cancel()
      throw new BodyTooLarge()
    }
    const chunks: Array<Uint8Array> = []
    let length = 0
    try {
      // Leaving the loop cancels the body.
      for await (const chunk of body) {
        length += chunk.length
        held += chunk.length
        if (length > each) throw new BodyTooLarge()
        if (held > together) throw new BodiesTooLarge()
        chunks.push(chunk)
      }
    } finally {
      held -= length
    }
    return Buffer.concat(chunks)
  }
}
