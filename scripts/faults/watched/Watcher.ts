/** What scrapes the services and evaluates the alerts: a real Prometheus where there is one, else our evaluator. */
import type { Effect, Scope } from "effect"
import type { NotTried } from "../Scenario.ts"

/** An alert that fires. */
export interface Firing {
  readonly name: string
  readonly summary: string
}

export interface Watcher {
  readonly name: string
  /** Watches operators' ports until the scope closes, under the name of a fault. */
  readonly watch: (fault: string, ports: ReadonlyArray<string>) => Effect.Effect<void, NotTried, Scope.Scope>
  /** What fires now for a fault. */
  readonly firing: (fault: string) => Effect.Effect<ReadonlyArray<Firing>, NotTried>
}
