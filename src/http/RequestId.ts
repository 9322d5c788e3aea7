/** The id of a request. */
import { randomUUID } from "node:crypto"

const visibleAscii = /^[\x21-\x7e]{1,128}$/

/** The id that the client sent if it is 1 to 128 visible ASCII characters, otherwise a new one. */
export const requestIdOf = (sent?: string | ReadonlyArray<string>): string =>
  typeof sent === "string" && visibleAscii.test(sent) ? sent : randomUUID()
