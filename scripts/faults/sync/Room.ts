/** Where histories happen: tables of records, and what writers and readers must know of them. */

/** A table of records with its resource. */
export interface Kind {
  readonly resource: string
  readonly table: string
  /** A text column and field of the same name. Every write puts a version there that is higher than all before it. */
  readonly label: string
  /** The column of the time of the last change. Clinics have none. */
  readonly time: "updated_at" | "modified_at" | undefined
  /** True if records are marked as deleted. */
  readonly isMarked?: true
  /** What else an insert sets: SQL over `id`, by column. */
  readonly also?: Readonly<Record<string, string>>
}

const kind = (table: string, label: string, more: Partial<Kind> = {}): Kind => ({
  resource: table.replaceAll("_", "-"),
  table,
  label,
  time: "updated_at",
  ...more
})

/** The tables that rooms are in. */
export const kinds = [
  kind("pets", "name"),
  kind("products", "product_name", { time: "modified_at" }),
  kind("clinics", "name", { time: undefined }),
  kind("consumption_logs", "product_name", { isMarked: true }),
  kind("invoices", "status", { isMarked: true }),
  // Three invoices have all the lines.
  kind("invoice_lines", "product_name", { isMarked: true, also: { invoice: "'r' || (1 + abs(hashtext(id)) % 3)" } })
]

/** Tables that are written as a pair: in every state of the database both have the same versions. */
export const ledgers = [kind("payment_plans", "status"), kind("subscriptions", "status")] as const

/** The records of one organization in one table. */
export interface Room {
  readonly organization: 0 | 1
  readonly kind: Kind
  /** How many there are at first. */
  readonly count: number
}

/** The ids of the organizations of a history. */
export type Organizations = readonly [string, string]

/** The id of a record of a room. */
export const idOf = (number: number) => `r${number}`

/** The tables of all kinds. */
export const tables = [...kinds, ...ledgers].map(({ table }) => table)
