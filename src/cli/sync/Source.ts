/** The service that is copied. */
import { Context, type Effect, Schema, type Stream } from "effect"
import type { Page } from "./Target.ts"

/** The cursor is of an order of changes that began anew: everything is to be read again. */
export class CursorExpired extends Schema.TaggedError<CursorExpired>()("CursorExpired", {}) {}

/** The service does not accept the requests, such as for their API key. Trying again does not help. */
export class SourceRefused extends Schema.TaggedError<SourceRefused>()("SourceRefused", { message: Schema.String }) {}

/** The service does not respond, or is busy. Trying again may help. */
export class SourceUnavailable extends Schema.TaggedError<SourceUnavailable>()("SourceUnavailable", {
  message: Schema.String
}) {}

export type SourceError = SourceRefused | SourceUnavailable

/** The records of the organization that the API key is of. */
export class Source extends Context.Service<
  Source,
  {
    /** The address of the service, without user information. */
    readonly url: string
    /** The id of the organization. */
    readonly organization: Effect.Effect<string, SourceError>
    /** The pages of changes since a cursor, or from the beginning. The last one has `hasMore` false. */
    readonly changes: (resource: string, cursor: string | undefined) => Stream.Stream<Page, SourceError | CursorExpired>
  }
>()("practice-data/cli/sync/Source") {}
