/** The text of a JSON body: its value, or why it is refused. */
import { isUtf8 } from "node:buffer"
import { Result } from "effect"
import type { RequestInvalid } from "../api/Errors.ts"
import { faults, invalidAt, tooLong } from "../api/Faults.ts"
import { prune, type Wanted } from "./JsonPruning.ts"
import { runSync, step } from "./TimeSlices.ts"

const isMissing = (text: string): boolean => ["", "null"].includes(text.trim())

const missing: RequestInvalid = invalidAt(["body"], faults.missing)

const notJson = (text: string, position: number): RequestInvalid =>
  isMissing(text) ? missing : invalidAt(["body", position], faults.json)

/** Characters, or bytes. A text of no more is parsed without yielding: nothing that short takes long. */
export const short = 4096

const decoder = new TextDecoder()

const notUtf8 = Result.fail(invalidAt(["body", 0], faults.json))

/** Decodes a short body as UTF-8. */
export const decode = (body: Uint8Array): Result.Result<string, RequestInvalid> =>
  isUtf8(body) ? Result.succeed(decoder.decode(body)) : notUtf8

/** Decodes a body as UTF-8, yielding now and then. */
export function* decoding(body: Uint8Array): Generator<void, Result.Result<string, RequestInvalid>> {
  return (yield* step(() => isUtf8(body))) ? Result.succeed(yield* step(() => decoder.decode(body))) : notUtf8
}

/** Prunes a text to what a schema looks at unless it is short, yielding now and then. */
export function* pruning(text: string, wanted: Wanted): Generator<void, Result.Result<string, RequestInvalid>> {
  if (text.length <= short) return Result.succeed(text)
  const pruned = yield* prune(text, wanted)
  switch (pruned._tag) {
    case "Json":
      return Result.succeed(pruned.text)
    case "Invalid":
      return Result.fail(notJson(text, pruned.position))
    case "TooLong":
      return Result.fail(invalidAt(["body"], tooLong(wanted.maximumItems, pruned.count)))
  }
}

const anything: Wanted = { shape: { _tag: "Leaf" }, maximumItems: Infinity }

/** The value of a text that is short or was pruned. */
export const parse = (text: string): Result.Result<unknown, RequestInvalid> =>
  isMissing(text)
    ? Result.fail(missing)
    : Result.try({
        try: (): unknown => JSON.parse(text),
        catch: () => {
          const pruned = runSync(prune(text, anything))
          return notJson(text, pruned._tag === "Invalid" ? pruned.position : text.length)
        }
      })
