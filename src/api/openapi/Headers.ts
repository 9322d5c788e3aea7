/** The headers of responses, as documents refer to them. */
import { Record } from "effect"
import { completeHeader, lagHeader } from "../records/Changes.ts"

const seconds = (minimum: number, example: number) => ({
  schema: { type: "integer", minimum, examples: [example] }
})

const fixed = (value: string) => ({ schema: { type: "string", enum: [value] } })

const headers = {
  "x-request-id": {
    description:
      "The id of the request: its own `x-request-id` where it has one of 1 to 128 visible ASCII characters, otherwise a new one. Name it when you report a problem.",
    schema: { type: "string", examples: ["5f0c6a4e-3d5b-4c0e-9b1a-2f7d8e6c1a90"] }
  },
  "x-service": {
    description: "Says that an endpoint of this service refuses the request, and no proxy or other server.",
    ...fixed("practice-data")
  },
  "retry-after": { description: "After how many seconds to try again.", ...seconds(1, 1) },
  "www-authenticate": { description: "The scheme of the credentials that are required.", ...fixed("Bearer") },
  "accept-encoding": { description: "The only content encoding that a request may have.", ...fixed("identity") },
  [lagHeader]: {
    description:
      "For how many seconds an open transaction has held changes back, in seconds; 0 where none are held back.",
    ...seconds(0, 0)
  },
  [completeHeader]: {
    description:
      "Whether the first load is complete: every record that existed when you began without a cursor, and has not changed since, has come.",
    schema: { type: "string", enum: ["true", "false"] }
  }
}

const referenceTo = (name: string) => `#/components/headers/${name}`

/** References to headers of a response, by their names. */
export const refer = (response: Readonly<Record<string, unknown>>) =>
  Record.map({ "x-request-id": {}, ...response }, (_, name) => ({ $ref: referenceTo(name) }))

/** The headers that paths refer to, by their names. */
export const usedIn = (paths: object) => {
  const text = JSON.stringify(paths)
  return Record.filter(headers, (_, name) => text.includes(`"${referenceTo(name)}"`))
}
