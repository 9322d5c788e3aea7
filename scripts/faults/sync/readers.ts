/** Readers by their manner. */
import * as ByChanges from "./ByChanges.ts"
import * as ByMargin from "./ByMargin.ts"
import * as ByOffset from "./ByOffset.ts"
import type { Manner } from "./History.ts"
import type { Options, Reader } from "./Reader.ts"

/** A reader, with an empty copy. */
export const make = (manner: Manner, options: Options): Reader => {
  switch (manner) {
    case "changes":
    case "replica":
    case "both":
      return ByChanges.make(options)
    case "margin":
      return ByMargin.make(options)
    case "offset":
      return ByOffset.make(options)
  }
}
