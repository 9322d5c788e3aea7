/** The files beside this one that are made from the lists of metrics and alerts, by name. */
import { dashboard } from "./dashboard.ts"
import { rules } from "./rules.ts"

export const files = (): Readonly<Record<"alerts.yaml" | "dashboard.json", string>> => ({
  "alerts.yaml": rules(),
  "dashboard.json": `${JSON.stringify(dashboard(), null, 2)}\n`
})
