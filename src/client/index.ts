/** The client of the practice data API and of the intake of invoice deletions, for any runtime that has `fetch`. */
export * from "./Errors.ts"
export { resources } from "./generated/resources.ts"
export type * from "./generated/types.ts"
export { InvoiceDeletions, type InvoiceDeletionsOptions, type SendOptions } from "./InvoiceDeletions.ts"
export type {
  AllChangesOptions,
  AllOptions,
  Attempt,
  ChangesOptions,
  ClientOptions,
  Fetch,
  RequestOptions
} from "./Options.ts"
export { PracticeData, type PracticeDataOptions } from "./PracticeData.ts"
export type {
  AnyRecord,
  AnyResource,
  Filters,
  KeyedResource,
  LiveResource,
  OwnResource,
  RecordResource,
  ResourceInfo,
  Verb
} from "./Resource.ts"
export type { Answer, WithResponse } from "./Response.ts"
