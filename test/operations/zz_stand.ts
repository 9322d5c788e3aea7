import { Effect, Layer, Option, Redacted } from "effect"
import { NodeRuntime } from "@effect/platform-node"
import * as OperationsListener from "../../src/operations/OperationsListener.ts"
import * as F from "./fakes.ts"
const now = Date.now()
const long = "x".repeat(120)
const tasks = [
  F.taskOf("org_oakridge", "delivery-1", "dead", now),
  F.taskOf(
    "org_willow_creek_veterinary_partners_of_the_north_west",
    "7c9e6679-7425-40de-944b-e07fc1f90ae7",
    "dead",
    now,
    {
      last_error:
        "ConstraintError 23514, constraint " + long + ", table invoices\nline two <script>alert(1)</script> " + long
    }
  ),
  ...Array.from({ length: 46 }, (_, i) =>
    F.taskOf(
      i % 2 ? "org_oakridge" : "org_harbor",
      `nightly-2026-11-${String(i).padStart(3, "0")}`,
      (["completed", "scheduled", "running", "completed"] as const)[i % 4]!,
      now
    )
  ),
  F.taskOf("<b>org</b>\u202e" + long, long, "scheduled", now)
]
const recent = F.busy(now)
const all = Effect.sync(() => [
  F.processOf(now, {
    recent,
    checks: {
      records: null,
      credentials: null,
      tasks: Date.now() % 60000 < 30000 ? "Cannot be reached" : null,
      changes: null,
      processor: null
    }
  }),
  F.processOf(now, { process: 2, pid: 4243, recent: F.busy(now, 0.5), memory: 2.2e9, eventLoopDelay: 120 }),
  { process: 3, pid: 4244, silent: "It did not answer within a second" }
])
const audit = tasks.slice(0, 20).map((t) => F.entryOf(t, now))
const holders = [
  {
    pid: 991,
    prepared: null,
    database: "practice",
    user: "loader",
    application: "psql",
    state: "idle in transaction",
    since: new Date(now - 400000).toISOString()
  }
]
const empty = process.env["EMPTY"] !== undefined
OperationsListener.layer({
  host: "127.0.0.1",
  port: Number(process.env["PORT"] ?? 9464),
  token: Option.some(Redacted.make("correct-horse-battery"))
}).pipe(
  Layer.provide([
    F.figures(empty ? Effect.succeed([F.processOf(now)]) : all),
    F.store(empty ? { tasks: [], keys: [], audit: [], holders: [] } : { tasks, keys: F.keysOf(now), audit, holders })
  ]),
  Layer.launch,
  NodeRuntime.runMain
)
