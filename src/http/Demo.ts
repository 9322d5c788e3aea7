/** The demo data, as pages speak of it. */
import { Context } from "effect"

interface DemoKey {
  readonly organization: string
  readonly key: string
}

/** The API keys of the demo data; none where the service does not have demo data. Pages show them to everybody. */
export const DemoKeys = Context.Reference<ReadonlyArray<DemoKey>>("practice-data/http/Demo/DemoKeys", {
  defaultValue: () => []
})
