/** The numbers and ids of the demo data, which tests and users of it rely on. */
import { assert, it } from "@effect/vitest"
import { Array, Record } from "effect"
import { organizations, recordsOf } from "../../../src/demo/DemoData.ts"

const sizeOf = (items: ReadonlyArray<unknown>) => items.length

it.each(organizations)("the demo data of $slug has its numbers of records and its ids, on every machine", (one) => {
  const { slug } = one
  const data = recordsOf(one)
  const sizes: Readonly<Record<string, number>> = Record.map(data, sizeOf)
  const expected = { clinics: 2, "consumption-logs": 150, charges: 150, invoices: 40, "invoice-lines": 120 }
  assert.deepInclude(sizes, expected)
  // A second page at the default limit.
  assert.isAtLeast(Object.values(sizes).filter((size) => size > 100).length, 3)
  assert.notInclude(Object.values(sizes), 0)
  assert.isTrue(data["consumption-logs"].some((log) => log.is_deleted))
  const lines = Array.groupBy(data["invoice-lines"], ({ invoice }) => String(invoice))
  assert.deepStrictEqual([...new Set(Object.values(lines).map(sizeOf))], [3])
  const together = Array.groupBy(data.charges, ({ updated_at }) => String(updated_at))
  assert.isAtLeast(Math.max(...Object.values(together).map(sizeOf)), 5)
  const first = [data.invoices[0].id, data["invoice-lines"][0].id, data.charges[0].id, data.pets[0].id]
  const ids = [`invoice_${slug}_0001`, `line_${slug}_0001_1`, `charge_${slug}_0001`, `pet_${slug}_0001`]
  assert.deepStrictEqual(first, ids)
  const accounts = data.clinics.map(({ id, processor_account }) => `${id}: ${processor_account}`)
  assert.deepStrictEqual(accounts, [`clinic_${slug}_01: acct_demo_${slug}`, `clinic_${slug}_02: null`])
})
