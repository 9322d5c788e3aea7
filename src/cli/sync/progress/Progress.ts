/** What is told of a sync while it runs. */
import { Context, Data, type Effect } from "effect"

/** Something that happened. */
export type Event = Data.TaggedEnum<{
  /** The target was opened, for the first time. */
  Opened: { readonly organization: string; readonly url: string; readonly target: string }
  /** A resource is being read. */
  Started: { readonly resource: string }
  /** A page was applied. */
  Applied: { readonly resource: string; readonly records: number; readonly removed: number }
  /** The copy of a resource has everything that the service told. */
  InStep: { readonly resource: string; readonly lag: number }
  /** All resources are in step. */
  RoundEnded: {}
  /** A sentence for whoever watches. */
  Note: { readonly message: string }
}>
export const Event = Data.taggedEnum<Event>()

/** Is told what happens. */
export class Progress extends Context.Service<Progress, { readonly report: (event: Event) => Effect.Effect<void> }>()(
  "practice-data/cli/sync/Progress"
) {}
