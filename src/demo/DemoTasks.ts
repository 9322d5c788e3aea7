/** The deletion task of the demo data: what became of a delivery that deleted one of its invoices. */
import { DateTime } from "effect"
import { deliveryOf } from "../deletions/Delivery.ts"
import type { OwnedTask } from "../deletions/TaskReads.ts"
import type { organizations } from "./DemoData.ts"

type Organization = Pick<(typeof organizations)[number], "slug">

/** The delivery of the task. */
export const deliveryTo = ({ slug }: Organization) =>
  deliveryOf(
    { "idempotency-key": "demo-delivery-1", "x-organization-id": `org_${slug}` },
    { invoices: [{ invoice_id: `invoice_${slug}_0020` }] }
  )

// The time at which the invoice of the demo data was deleted.
const deletedAt = DateTime.makeUnsafe("2026-01-09T22:00:00.000Z")

/** The task of an organization, completed. */
export const taskOf = (owner: Organization): OwnedTask => {
  const { idempotencyKey, invoiceLinesCount, invoicesCount, organization, taskId } = deliveryTo(owner)
  return {
    organization_id: organization,
    task_id: taskId,
    idempotency_key: idempotencyKey,
    state: "completed",
    received_at: DateTime.subtract(deletedAt, { minutes: 1 }),
    scheduled_for: deletedAt,
    started_at: deletedAt,
    finished_at: deletedAt,
    attempts: 1,
    invoices_count: invoicesCount,
    invoice_lines_count: invoiceLinesCount,
    outcome: {
      invoices: { deleted: 1, not_found: 0, clinic_mismatch: 0, client_mismatch: 0 },
      invoice_lines: { deleted: 0, not_found: 0, invoice_mismatch: 0, clinic_mismatch: 0 },
      lines_of_invoices: 3
    }
  }
}
