/**
 * The tables of the records, the API keys, and the role of the data API.
 *
 * Each record table keeps the JSON of its rows in a generated column: the database renders a row once, when it is
 * written, whoever writes it, and a page is put together from rendered rows. Organization first in every primary key
 * and index, so that the tables can be distributed by organization.
 */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

type Kind = "text" | "texts" | "textsOrNull" | "number" | "integer" | "boolean" | "date" | "instant" | "timestamp"

const types: Readonly<Record<Kind, string>> = {
  text: `text collate "C"`,
  texts: `api_texts not null default '{}'`,
  textsOrNull: "api_texts",
  number: "api_decimal",
  integer: "integer",
  boolean: "boolean not null default false",
  date: "api_date",
  instant: "api_instant",
  timestamp: "api_instant not null default now()"
}

// The types of the arguments of the functions that render; domains and constraints are the columns' business.
const plainTypes: Readonly<Record<Kind, string>> = {
  text: "text",
  texts: "text[]",
  textsOrNull: "text[]",
  number: "numeric",
  integer: "integer",
  boolean: "boolean",
  date: "date",
  instant: "timestamptz",
  timestamp: "timestamptz"
}

const orNull = (json: string) => `coalesce(${json}, 'null')`

const rendered: Readonly<Record<Kind, (column: string) => string>> = {
  text: (column) => orNull(`to_json(${column})::text`),
  texts: (column) => orNull(`to_json(${column})::text`),
  textsOrNull: (column) => orNull(`to_json(nullif(${column}, '{}'))::text`),
  number: (column) =>
    orNull(
      `case when ${column} <> 0 and abs(${column}) < 0.000001 then api_tiny(${column}) else trim_scale(${column})::text end`
    ),
  integer: (column) => orNull(`${column}::text`),
  boolean: (column) => orNull(`${column}::text`),
  date: (column) => orNull(`'"' || to_char(${column}::timestamp, 'YYYY-MM-DD') || '"'`),
  instant: (column) => orNull(`'"' || to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"'`),
  timestamp: (column) => rendered.instant(column)
}

const snakeCase = (name: string) => name.replace(/([a-z])([A-Z])/g, "$1_$2").toLowerCase()

const words = (text: string) => text.trim().split(/\s+/)

interface Table {
  readonly name: string
  /** The fields of the record in order, as `kind name`, or `name` and the SQL that renders it. */
  readonly fields: ReadonlyArray<string | readonly [name: string, json: string]>
  /** Columns that are not shown as they are, as `kind name`. */
  readonly hidden?: ReadonlyArray<string>
  readonly orderedBy?: string
  /** The columns that searches filter by, beside the id and the timestamps. */
  readonly filtered: string
  /** A column that marks records which searches leave out. */
  readonly marked?: string
}

const isKind = (word: string | undefined): word is Kind => word !== undefined && word in types

const column = (field: string) => {
  const [kind, name] = words(field)
  if (!isKind(kind) || name === undefined) throw new Error(`not a column: ${field}`)
  return { kind, name, column: snakeCase(name) }
}

const statements = ({ name, fields, hidden = [], orderedBy = "updated_at", filtered, marked }: Table) => {
  const shown = fields.filter((field) => typeof field === "string").map(column)
  const columns = [...shown, ...hidden.map(column)]
  const json = fields.map((field) => {
    if (typeof field !== "string") return [field[0], field[1]] as const
    const parsed = column(field)
    return [parsed.name, rendered[parsed.kind](parsed.column)] as const
  })
  const object = json.map(([key, value], index) => `'${index === 0 ? "{" : ","}"${key}":' || ${value}`).join(" || ")
  const timestamps = columns.map((c) => c.column).filter((c) => c === "created_at" && c !== orderedBy)
  const order = `${orderedBy}, id`
  const index = (suffix: string, definition: string) =>
    `create index ${name}_${suffix} on ${name} (organization_id, ${definition}`
  return [
    `create function ${name}_record(${columns.map((c) => `${c.column} ${plainTypes[c.kind]}`).join(", ")}) returns text
     language sql immutable parallel safe return ${object} || '}'`,
    `create table ${name} (
       organization_id text collate "C" not null,
       ${columns.map((c) => `${c.column} ${types[c.kind]}`).join(",\n       ")},
       record text not null generated always as (${name}_record(${columns.map((c) => c.column).join(", ")})) stored,
       primary key (organization_id, id)
     )`,
    `${index("order", order)})`,
    ...(marked === undefined ? [] : [`${index("order_unmarked", order)}) where not ${marked}`]),
    ...words(filtered)
      .filter((word) => word !== "")
      .flatMap((filter) => [
        `${index(filter, `${filter}, ${order}`)})`,
        ...(marked === undefined ? [] : [`${index(`${filter}_unmarked`, `${filter}, ${order}`)}) where not ${marked}`])
      ]),
    // A search by clinic takes the home clinic's rows, and of the servicing clinic's the few that these leave out.
    ...(columns.some((c) => c.column === "servicing_clinic") && words(filtered).includes("servicing_clinic")
      ? [`${index("visiting", `servicing_clinic, ${order}`)}) where home_clinic is distinct from servicing_clinic`]
      : []),
    ...timestamps.flatMap((timestamp) => [
      `${index(timestamp, `${timestamp}, ${order}`)})`,
      `${index("changed_before_created", order)}) where ${orderedBy} < ${timestamp}`
    ]),
    `grant select on ${name} to practice_data_api`
  ]
}

// What counts as blank in a name.
const whitespace =
  "E' \\t\\n\\x0b\\f\\r\\u00a0\\u1680\\u2000\\u2001\\u2002\\u2003\\u2004\\u2005\\u2006\\u2007\\u2008\\u2009\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000\\ufeff'"

const planName = [
  "wellnes_plan_name",
  orNull(
    `to_json(nullif(concat_ws(' ', ${["plan_name", "species", "plan_header"]
      .map((part) => `nullif(btrim(${part}, ${whitespace}), '')`)
      .join(", ")}), ''))::text`
  )
] as const

const planNameParts = ["text plan_name", "text species", "text plan_header"]

const split = ["to_platform", "to_processor", "to_clinic"].map((part) => `payment_split_${part}`)

const paymentSplit = [
  "payment_split",
  `${["to_Platform", "to_Processor", "to_Clinic"]
    .map((key, index) => `'${index === 0 ? "{" : ","}"${key}":' || ${rendered.number(split[index] ?? "")}`)
    .join(" || ")} || '}'`
] as const

const changed = ["timestamp created_at", "timestamp updated_at"]

const tables: ReadonlyArray<Table> = [
  {
    name: "organizations",
    fields: ["text id", "text name", ...changed],
    filtered: ""
  },
  {
    name: "clinics",
    fields: ["text id", "text clinic_pims_id", "text name", "text time_zone", "text url", "text organization"],
    hidden: ["timestamp created_at"],
    orderedBy: "created_at",
    filtered: "clinic_pims_id name"
  },
  {
    name: "pets",
    fields: [
      "text id",
      "text name",
      "text species",
      "text breed",
      "text sex",
      "date date_of_birth",
      "text clinic",
      "text client_id",
      ...changed
    ],
    filtered: "clinic client_id species"
  },
  {
    name: "subscriptions",
    fields: [
      "text id",
      "text pet",
      "text clinic",
      "text plan_name",
      "text status",
      "instant start_date",
      "instant end_date",
      "instant cancelled_at",
      "number price",
      "text billing_frequency",
      "boolean auto_renew",
      ...changed
    ],
    filtered: "pet clinic status"
  },
  {
    name: "payment_plans",
    fields: [
      "text id",
      "text subscription",
      "text pet",
      "text clinic",
      "text status",
      "number payment_amount",
      "integer number_of_payments",
      "integer payments_made",
      "text frequency",
      "instant next_payment_date",
      ...changed
    ],
    filtered: "subscription pet clinic status"
  },
  {
    name: "payment_intents",
    fields: [
      "text id",
      "text clinic_name",
      "text clinic_id",
      "text pet",
      "text subscription",
      planName,
      "number payment_amount",
      paymentSplit,
      "instant scheduled_date",
      "instant captured_date",
      "boolean paid",
      "boolean isRefunded",
      "boolean IsTest",
      ...changed,
      "boolean isModifyCatchupPayment",
      "textsOrNull payment_modifications",
      "text processor_payment_intent_id",
      "integer attempt_number",
      "number original_amount_received",
      "number refunded_amount"
    ],
    hidden: [...planNameParts, ...split.map((name) => `number ${name}`)],
    filtered: "subscription pet clinic_id"
  },
  {
    name: "cancellation_payment_intents",
    fields: [
      "text id",
      "text clinic_name",
      "text clinic_id",
      "instant date",
      "boolean discounted",
      "number discounted_amount",
      "number new_price",
      "number percent_discount",
      "text pet",
      "text subscription",
      planName,
      "number payments",
      "number payment_amount",
      "text payment_or_refund",
      "text paymentIntent_or_refund_id",
      "number total_benefits_consumed_at_retail_price",
      "number total_benefits_consumed_at_discounted_price",
      "text reason",
      "number early_cancellation_fee",
      "texts refund_ids",
      "boolean isSucceeded",
      "boolean IsTest",
      ...changed
    ],
    hidden: planNameParts,
    filtered: "pet subscription clinic_id"
  },
  {
    name: "pet_benefits",
    fields: [
      "text id",
      "text pet",
      "text subscription",
      "text benefit_name",
      "text benefit_description",
      "text wellness_plan_name",
      "boolean is_addon",
      "number revenue_to_recognize_per_unit",
      "number retail_value",
      "number provided",
      "number remaining",
      "boolean is_unlimited",
      "number rounding_addition",
      "boolean is_perk",
      "number in_kind_discount",
      "text parent_petbenefit",
      ...changed,
      "instant inactivation_date",
      "instant activation_date",
      "texts product_ids"
    ],
    hidden: ["boolean removed"],
    filtered: "pet subscription",
    marked: "removed"
  },
  {
    name: "products",
    fields: [
      "text id",
      "text clinic",
      "text product_code",
      "text pims_id",
      "text product_name",
      "number retail_price",
      "number member_price",
      "number member_cancellation_price",
      "timestamp created_at",
      "timestamp modified_at"
    ],
    orderedBy: "modified_at",
    filtered: "clinic product_code pims_id product_name"
  },
  {
    name: "consumption_logs",
    fields: [
      "text id",
      "text home_clinic",
      "text servicing_clinic",
      "text invoice_pims_id",
      "instant invoice_date",
      "text invoice_line",
      "number invoice_line_aje_delta_discounted",
      "number invoice_line_aje_delta_gross",
      "text invoice_line_pims_id",
      "text pet",
      "text pet_benefit",
      "text product_code",
      "text product_name",
      "number qty_available_on_plan",
      "number qty_consumed",
      "number qty_in_plan",
      "number qty_out_of_plan",
      "number qty_remaining",
      "number revenue_in_plan_total",
      "number revenue_out_of_plan_total",
      "number revenue_to_recognize_total",
      "number revenue_to_recognize_per_unit",
      "boolean is_unlimited_benefit",
      "text subscription",
      ...changed,
      "boolean is_deleted"
    ],
    filtered: "pet subscription home_clinic product_code invoice_line",
    marked: "is_deleted"
  },
  {
    name: "invoices",
    fields: [
      "text id",
      "text home_clinic",
      "text servicing_clinic",
      "text client_id",
      "text pet",
      "text invoice_pims_id",
      "instant invoice_date",
      "text status",
      "number subtotal",
      "number discount",
      "number tax",
      "number total",
      "boolean is_deleted",
      "instant deleted_at",
      ...changed
    ],
    filtered: "home_clinic servicing_clinic client_id pet invoice_pims_id status",
    marked: "is_deleted"
  },
  {
    name: "invoice_lines",
    fields: [
      "text id",
      "text invoice",
      "text clinic",
      "text pet",
      "text invoice_line_pims_id",
      "text product_code",
      "text product_name",
      "number quantity",
      "number unit_price",
      "number discount",
      "number total",
      "boolean is_deleted",
      "instant deleted_at",
      ...changed
    ],
    filtered: "invoice clinic pet product_code",
    marked: "is_deleted"
  },
  {
    name: "charges",
    fields: [
      "text id",
      "text home_clinic",
      "text servicing_clinic",
      "text invoice",
      "number invoice_pims_id",
      "text payment_method_id",
      "text status",
      "number original_amount",
      "number current_amount",
      "number net_paid",
      "number paid_amount",
      "number overpaid_amount",
      "number outstanding_balance",
      "number refunded_amount",
      ...changed
    ],
    hidden: ["text pet"],
    filtered: "home_clinic servicing_clinic pet status invoice invoice_pims_id"
  },
  {
    name: "charge_payments",
    fields: ["text id", "text currency", "text status", "number amount", "text charge", ...changed],
    filtered: "charge status"
  },
  {
    name: "charge_adjustments",
    fields: ["text id", "text charge", "number amount", "text reason", ...changed],
    filtered: "charge"
  },
  {
    name: "charge_refunds",
    fields: ["text id", "instant refund_date", "number amount", "text charge", ...changed],
    filtered: "charge"
  }
]

const role = (name: string) => `do $$ begin
    if not exists (select from pg_roles where rolname = '${name}') then create role ${name} nologin; end if;
  exception when duplicate_object or unique_violation then null;
  end $$`

const all = [
  ...["practice_data_api", "practice_data_intake", "practice_data_worker"].map(role),
  // A number is shown exactly as it is stored, which a double can do for 15 digits.
  `create domain api_decimal as numeric constraint api_decimal_fits check (
     abs(value) < 1e21 and abs(value) < 'Infinity' and scale(trim_scale(value)) <= 30
     and length(btrim(replace(abs(value)::text, '.', ''), '0')) <= 15)`,
  `create domain api_instant as timestamptz constraint api_instant_fits check (
     value >= '0001-01-01 00:00:00+00' and value < '10000-01-01 00:00:00+00')`,
  `create domain api_date as date constraint api_date_fits check (value >= '0001-01-01' and value <= '9999-12-31')`,
  `create domain api_texts as text[] constraint api_texts_fits check (
     case when coalesce(array_ndims(value), 1) = 1 then array_position(value, null) is null else false end)`,
  `create function api_tiny(value numeric) returns text language sql immutable strict parallel safe
     return regexp_replace(btrim(to_char(value, '9.99999999999999EEEE')), '\\.?0*e-0*', 'e-')`,
  ...tables.flatMap(statements),
  "alter table organizations add constraint organizations_own_id check (id = organization_id)",
  `create table api_keys (
     organization_id text collate "C" not null,
     id text collate "C" not null,
     name text not null,
     prefix text not null,
     key_hash bytea not null unique,
     created_at timestamptz not null default now(),
     last_used_on date,
     revoked_at timestamptz,
     primary key (organization_id, id)
   )`,
  // The data API can only select; this is the one trace that it leaves.
  `create function touch_api_key(hash bytea) returns void language sql security definer set search_path from current
     begin atomic
       update api_keys set last_used_on = (now() at time zone 'UTC')::date
       where key_hash = hash and last_used_on is distinct from (now() at time zone 'UTC')::date;
     end`,
  "revoke all on function touch_api_key from public",
  "grant execute on function touch_api_key to practice_data_api",
  "grant select on api_keys to practice_data_api",
  "grant select on migrations to practice_data_api, practice_data_intake, practice_data_worker",
  "grant select, update (is_deleted, deleted_at, updated_at) on invoices, invoice_lines to practice_data_worker"
]

export default Effect.flatMap(SqlClient.SqlClient, (sql) =>
  Effect.forEach(all, (statement) => sql.unsafe(statement), { discard: true })
)
