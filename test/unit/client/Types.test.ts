/** Mistakes of a caller that must not compile. `npm run types` checks each. */
import { assert, expectTypeOf, it } from "vitest"
import {
  type AnyRecord,
  type Charge,
  type ChangesPage,
  type DeliveryReceipt,
  InvoiceDeletions,
  type LivePage,
  type Pet,
  PracticeData,
  type PspObject
} from "../../../src/client/index.ts"

const client = new PracticeData({ baseUrl: "http://service.test", apiKey: "key" })
const sender = new InvoiceDeletions({ baseUrl: "http://service.test", organization: "org_1" })

const calls = {
  search: () => client.charges.search({ status: "open", limit: 1, created_at_since: new Date() }, { timeout: 1 }),
  all: () => client.pets.all({ species: undefined, updated_at_since: "2026-01-01" }),
  get: () => client.charges.get("charge_1"),
  changes: () => client.charges.changes(null, { follow: true }),
  live: () => client.psp.balanceTransactions.search({ clinic: "clinic_1" }),
  task: () => client.invoiceDeletions.get({ idempotency_key: "delivery-1" }),
  send: () => sender.send({ invoices: [{ invoice_id: "i", clinic_id: null }] }),
  any: () => client.resource("charges").search?.({ anything: 1 })
}

const mistakes = {
  // @ts-expect-error -- charges have no such filter
  filter: () => client.charges.search({ state: "open" }),
  // @ts-expect-error -- null counts as absent, and would widen the result
  null: () => client.charges.search({ status: null }),
  // @ts-expect-error -- a filter of another type
  type: () => client.charges.search({ limit: "10" }),
  // @ts-expect-error -- a walk reads all pages
  offset: () => client.charges.all({ offset: 10 }),
  // @ts-expect-error -- the id is required
  id: () => client.charges.get(),
  // @ts-expect-error -- the clinic is required
  clinic: () => client.psp.charges.all({}),
  // @ts-expect-error -- an organization has no search
  verb: () => client.organization.search(),
  // @ts-expect-error -- an invoice is named by its id
  item: () => sender.send({ invoices: [{ clinic_id: "c" }] }),
  // @ts-expect-error -- the key is required
  key: () => new PracticeData({ baseUrl: "http://service.test" })
}

it("the client is typed", () => {
  expectTypeOf(calls.search).returns.resolves.toEqualTypeOf<Array<Charge>>()
  expectTypeOf(calls.all).returns.toEqualTypeOf<AsyncGenerator<Pet, void, undefined>>()
  expectTypeOf(calls.get).returns.resolves.toEqualTypeOf<Charge>()
  expectTypeOf(calls.changes).returns.toEqualTypeOf<AsyncGenerator<ChangesPage<Charge>, void, undefined>>()
  expectTypeOf(calls.live).returns.resolves.toEqualTypeOf<LivePage<PspObject>>()
  expectTypeOf(calls.send).returns.resolves.toEqualTypeOf<DeliveryReceipt>()
  expectTypeOf(calls.any).returns.toEqualTypeOf<Promise<Array<AnyRecord>> | undefined>()
  expectTypeOf<Charge["invoice_pims_id"]>().toEqualTypeOf<number | null>()
  expectTypeOf<Charge>().not.toBeAny()
  assert.isAbove(Object.keys(mistakes).length, 0)
})
