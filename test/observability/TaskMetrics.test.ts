/** How attempts to run deletion tasks are counted. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Series from "../../src/observability/Series.ts"
import * as TaskMetrics from "../../src/observability/TaskMetrics.ts"
import type { TaskRun } from "../../src/observability/TaskRun.ts"
import { samples, withRegistry } from "../support/metrics.ts"

const run: TaskRun = {
  organization: "org_a",
  taskId: "task",
  idempotencyKey: "key",
  attempt: 1,
  isTakeover: false,
  result: "completed",
  duration: 5,
  late: 1200,
  outcome: {
    invoices: { deleted: 1, not_found: 2, clinic_mismatch: 3, client_mismatch: 4 },
    invoice_lines: { deleted: 5, not_found: 6, invoice_mismatch: 7, clinic_mismatch: 8 },
    lines_of_invoices: 9
  }
}

it.effect("attempts are counted by their result, and what completed tasks named by its verdict", () =>
  Effect.gen(function* () {
    const observe = TaskMetrics.make(yield* Series.current)
    observe(run)
    const { outcome: _, ...failed } = { ...run, result: "failed" as const, isTakeover: true }
    observe(failed)
    const all = yield* samples
    const items = (kind: string, verdict: string) =>
      all[`practice_data_task_items_total{kind="${kind}",verdict="${verdict}"}`]
    assert.deepStrictEqual(
      ["deleted", "not_found", "clinic_mismatch", "client_mismatch", "invoice_mismatch"].map((verdict) => [
        items("invoices", verdict),
        items("invoice_lines", verdict),
        items("lines_of_invoices", verdict)
      ]),
      [
        [1, 5, 9],
        [2, 6, undefined],
        [3, 8, undefined],
        [4, undefined, undefined],
        [undefined, 7, undefined]
      ]
    )
    assert.deepInclude(all, {
      'practice_data_task_runs_total{outcome="completed"}': 1,
      'practice_data_task_runs_total{outcome="failed"}': 1,
      'practice_data_task_runs_total{outcome="dead"}': 0,
      practice_data_task_attempts_total: 2,
      practice_data_task_takeovers_total: 1,
      practice_data_task_delay_seconds_count: 1,
      practice_data_task_delay_seconds_sum: 1.2
    })
  }).pipe(withRegistry)
)
