/** The client of the practice data API and of the intake of invoice deletions, for any runtime that has `fetch`. */
export * from "./Errors.ts"
export type * from "./generated.ts"
export { resources } from "./generated.ts"
export { InvoiceDeletions, type InvoiceDeletionsOptions, type SendOptions } from "./InvoiceDeletions.ts"
export type { ClientOptions, Fetch, RequestOptions } from "./Options.ts"
export { PracticeData, type PracticeDataOptions } from "./PracticeData.ts"
export type {
  AllOptions,
  AnyRecord,
  AnyResource,
  ChangesOptions,
  Filters,
  KeyedResource,
  LiveResource,
  OwnResource,
  RecordResource,
  ResourceInfo,
  Verb
} from "./Resource.ts"
