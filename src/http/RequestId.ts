/** The id of a request, which its answer carries and its log lines name. */
import { randomUUID } from "node:crypto"

const visibleAscii = /^[\x21-\x7e]{1,128}$/

/** The id that a client gave its request, when it is 1 to 128 visible ASCII characters, else a new one. */
export const requestId = (given?: string | ReadonlyArray<string>): string =>
  typeof given === "string" && visibleAscii.test(given) ? given : randomUUID()
