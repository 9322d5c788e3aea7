/**
 * What a search must answer, worked out from the rows themselves: the contract's filters written down once more, and
 * nothing of how the stores read.
 */
import type { Criteria } from "../../src/records/Repository.ts"
import type { Row } from "../../src/records/Row.ts"

/** `= a b`: a or b equals; `>=` and `<`: bounds of a time; `#`: the number that is spelled; `-`: unless asked for. */
type Meaning = `${"=" | ">=" | "<" | "#" | "-"} ${string}`

const since = { created_at_since: ">= created_at", updated_at_since: ">= updated_at" } as const

/** The filters of each resource in the contract's order, each with its meaning. */
export const filters: Readonly<Record<string, Readonly<Record<string, Meaning>>>> = {
  organization: {},
  clinics: { id: "= id", clinic_pims_id: "= clinic_pims_id", name: "= name" },
  pets: { id: "= id", clinic: "= clinic", client_id: "= client_id", species: "= species", ...since },
  subscriptions: { id: "= id", pet: "= pet", clinic: "= clinic", status: "= status", ...since },
  "payment-plans": {
    id: "= id",
    subscription: "= subscription",
    pet: "= pet",
    clinic: "= clinic",
    status: "= status",
    ...since
  },
  "payment-intents": {
    id: "= id",
    subscription_id: "= subscription",
    pet_id: "= pet",
    clinic: "= clinic_id",
    updated_at_since: ">= updated_at",
    created_at_since: ">= created_at"
  },
  "cancellation-payment-intents": {
    id: "= id",
    pet: "= pet",
    subscription: "= subscription",
    clinic: "= clinic_id",
    ...since
  },
  "pet-benefits": {
    id: "= id",
    pet_id: "= pet",
    subscription_id: "= subscription",
    include_deleted: "- removed",
    ...since,
    created_before: "< created_at",
    updated_before: "< updated_at"
  },
  products: {
    id: "= id",
    clinic: "= clinic",
    product_code: "= product_code",
    pims_id: "= pims_id",
    product_name: "= product_name",
    modified_since: ">= modified_at"
  },
  "consumption-logs": {
    id: "= id",
    pet: "= pet",
    subscription: "= subscription",
    home_clinic: "= home_clinic",
    product_code: "= product_code",
    invoice_line: "= invoice_line",
    invoice_line_id: "= invoice_line",
    include_deleted: "- is_deleted",
    modified_since: ">= updated_at",
    ...since
  },
  invoices: {
    id: "= id",
    clinic: "= home_clinic servicing_clinic",
    client_id: "= client_id",
    pet: "= pet",
    invoice_pims_id: "= invoice_pims_id",
    status: "= status",
    include_deleted: "- is_deleted",
    ...since
  },
  "invoice-lines": {
    id: "= id",
    invoice: "= invoice",
    clinic: "= clinic",
    pet: "= pet",
    product_code: "= product_code",
    include_deleted: "- is_deleted",
    ...since
  },
  charges: {
    id: "= id",
    clinic: "= home_clinic servicing_clinic",
    pet: "= pet",
    status: "= status",
    invoice_id: "= invoice",
    invoice_pims_id: "# invoice_pims_id",
    ...since
  },
  "charge-payments": { id: "= id", charge: "= charge", status: "= status", ...since },
  "charge-adjustments": { id: "= id", charge: "= charge", ...since },
  "charge-refunds": { id: "= id", charge: "= charge", ...since }
}

const orderedBy: Readonly<Record<string, string>> = { clinics: "created_at", products: "modified_at" }

/** The sign of a filter, and the fields that it looks at. */
export const meaningOf = (resource: string, filter: string) => {
  const [sign = "", ...columns] = (filters[resource]?.[filter] ?? "").split(" ")
  return { sign, columns }
}

const holds = (sign: string, stored: unknown, asked: Criteria[string]) => {
  switch (sign) {
    case "=":
      return stored === asked
    case "#":
      return stored === Number(asked)
    case ">=":
      return String(stored) >= String(asked)
    case "<":
      return String(stored) < String(asked)
    default:
      return asked === true || stored !== true
  }
}

const satisfies = (resource: string, row: Row, criteria: Criteria) =>
  Object.keys(filters[resource] ?? {}).every((filter) => {
    const { sign, columns } = meaningOf(resource, filter)
    const asked = criteria[filter]
    return (
      ((asked === undefined || asked === null) && sign !== "-") ||
      columns.some((column) => holds(sign, row.columns[column], asked))
    )
  })

/** The rows of an organization that satisfy every filter, by timestamp, then by the bytes of the id. */
export const found = (
  resource: string,
  rows: ReadonlyArray<Row>,
  organization: string,
  criteria: Criteria = {}
): ReadonlyArray<Row> => {
  const time = ({ columns }: Row) => String(columns[orderedBy[resource] ?? "updated_at"])
  return rows
    .filter((row) => row.organization === organization && satisfies(resource, row, criteria))
    .toSorted((a, b) =>
      time(a) === time(b) ? Buffer.compare(Buffer.from(a.id), Buffer.from(b.id)) : time(a) < time(b) ? -1 : 1
    )
}

/** The text of a page of these rows. */
export const pageOf = (rows: ReadonlyArray<Row>) => `{"body":[${rows.map((row) => row.json).join(",")}]}`

/** Other texts that spell the same number: with zeros around it, and moved by a power of ten. */
const respelled = (text: string) => [
  text.replace(/^-?/, "$&00").replace(/\.\d+|(?=e|$)/, (fraction) => `${fraction === "" ? ".0" : fraction}00`),
  text.includes("e") ? text.replace("e", "E") : `${text.replace(".", "")}e-${text.split(".")[1]?.length ?? 0}`
]

/** Values to ask a filter for: the first few that the rows have, near misses of them, and some that no row has. */
export const candidates = (
  resource: string,
  filter: string,
  rows: ReadonlyArray<Row>
): ReadonlyArray<Criteria[string]> => {
  const { sign, columns } = meaningOf(resource, filter)
  if (sign === "-") return [true, false, null]
  const stored = [...new Set(rows.flatMap((row) => columns.map((column) => row.columns[column])))]
    .filter((value) => value !== null)
    .map(String)
  switch (sign) {
    case "=":
      return [...stored.slice(0, 5), ...stored.slice(-1).map((value) => `${value} `), "nowhere", "", null]
    case "#":
      return [...stored.slice(0, 4), ...stored.slice(-2).flatMap(respelled), "987654321", "abc", null]
    default:
      return [...stored.slice(0, 5), "0001-01-01T00:00:00.000Z", "9999-12-31T23:59:59.999Z", null]
  }
}
