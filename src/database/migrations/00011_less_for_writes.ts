/**
 * Less work for each row that is written, while the tables are in use: records are rendered by PL/pgSQL, a plain number is
 * seen to fit without its digits being written out, and there are fewer indexes.
 *
 * - A filter of a table that marks records has one index, with the marker before the order, where it had two.
 * - The indexes of the order end with the time of creation: a search by that passes over other records in the index.
 * - That of the creation has nothing else. It serves a search that finds few records, which are sorted.
 * - A filter's index leaves out the records without a value, which no search by it finds.
 * - None is of the servicing clinic alone, for which no search asks.
 *
 * A service of the version before finds the same while it is replaced. Its searches that include marked records have no
 * index in their order by then, and sort what they find.
 */
import { Effect } from "effect"
import { addIndex, locking, retried } from "./addField.ts"
import { compileRecord } from "./compileRecord.ts"
import { script } from "./script.ts"

// No value that the old check accepted fails the new one: there is nothing to validate.
const cheapNumbers = script(String.raw`
do $domain$ begin
  if exists (
    select from pg_constraint where contypid = 'api_decimal'::regtype and pg_get_constraintdef(oid) like '%min_scale%'
  ) then return; end if;
  alter domain api_decimal add constraint api_decimal_is_exact check (
    (min_scale(value) <= 4 and value > -1e11 and value < 1e11)
    or (
      abs(value) < 1e21 and abs(value) < 'Infinity' and scale(trim_scale(value)) <= 30
      and length(btrim(replace(abs(value)::text, '.', ''), '0')) <= 15
    )
  ) not valid;
  alter domain api_decimal drop constraint api_decimal_fits;
  alter domain api_decimal rename constraint api_decimal_is_exact to api_decimal_fits;
end $domain$`)

interface Table {
  readonly name: string
  readonly orderedBy: "updated_at" | "modified_at"
  /** The column that marks records which a search leaves out, and the columns that filters look at. */
  readonly marked?: { readonly by: string; readonly filters: ReadonlyArray<string> }
  /** Indexes that no search uses. */
  readonly unused?: ReadonlyArray<string>
}

const tables: ReadonlyArray<Table> = [
  { name: "pets", orderedBy: "updated_at" },
  { name: "subscriptions", orderedBy: "updated_at" },
  { name: "payment_plans", orderedBy: "updated_at" },
  { name: "payment_intents", orderedBy: "updated_at" },
  { name: "cancellation_payment_intents", orderedBy: "updated_at" },
  { name: "pet_benefits", orderedBy: "updated_at", marked: { by: "removed", filters: ["pet", "subscription"] } },
  { name: "products", orderedBy: "modified_at" },
  {
    name: "consumption_logs",
    orderedBy: "updated_at",
    marked: { by: "is_deleted", filters: ["pet", "subscription", "home_clinic", "product_code", "invoice_line"] }
  },
  {
    name: "invoices",
    orderedBy: "updated_at",
    marked: { by: "is_deleted", filters: ["home_clinic", "client_id", "pet", "invoice_pims_id", "status"] },
    unused: ["invoices_servicing_clinic", "invoices_servicing_clinic_unmarked"]
  },
  {
    name: "invoice_lines",
    orderedBy: "updated_at",
    marked: { by: "is_deleted", filters: ["invoice", "clinic", "pet", "product_code"] }
  },
  { name: "charges", orderedBy: "updated_at", unused: ["charges_servicing_clinic"] },
  { name: "charge_payments", orderedBy: "updated_at" },
  { name: "charge_adjustments", orderedBy: "updated_at" },
  { name: "charge_refunds", orderedBy: "updated_at" }
]

const indexesOf = ({ marked, name, orderedBy, unused = [] }: Table) => {
  const order = `${orderedBy}, id`
  const marker = marked === undefined ? "" : `${marked.by}, `
  const replaced = (index: string) => (marked === undefined ? [index] : [index, `${index}_unmarked`])
  return [
    {
      name: `${name}_search`,
      columns: `(organization_id, ${marker}${order}, created_at)`,
      replaces: [...replaced(`${name}_order`), ...unused]
    },
    {
      name: `${name}_search_changed_before_created`,
      columns: `(organization_id, ${marker}${order}, created_at) where ${orderedBy} < created_at`,
      replaces: [`${name}_changed_before_created`]
    },
    { name: `${name}_created`, columns: "(organization_id, created_at)", replaces: [`${name}_created_at`] },
    ...(marked?.filters ?? []).map((filter) => ({
      name: `${name}_search_${filter}`,
      columns: `(organization_id, ${filter}, ${marker}${order}) where ${filter} is not null`,
      replaces: replaced(`${name}_${filter}`)
    }))
  ].map((index) => ({ table: name, ...index }))
}

const visiting = {
  table: "invoices",
  name: "invoices_search_visiting",
  columns:
    "(organization_id, servicing_clinic, is_deleted, updated_at, id) where home_clinic is distinct from servicing_clinic",
  replaces: ["invoices_visiting"]
}

export default {
  online: Effect.gen(function* () {
    // The lock of one table has processes that migrate at once take turns.
    yield* retried(locking("organizations", Effect.andThen(cheapNumbers, compileRecord())))
    yield* Effect.forEach([...tables.flatMap(indexesOf), visiting], (index) => addIndex(index).online, {
      discard: true
    })
  })
}
