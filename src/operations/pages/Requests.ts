/** `/ops/requests`: requests by endpoint and by organization. */
import * as Recent from "../../observability/Recent.ts"
import * as Chart from "../Chart.ts"
import * as Format from "../Format.ts"
import { type Html, html, link } from "../Html.ts"
import { type Column, section, table } from "../Layout.ts"
import { reasonText } from "./Words.ts"
import { spanOf, type WindowName, windowTabs } from "./Window.ts"

/** What rows are sorted by. */
const orders = ["name", "requests", "client", "server", "p50", "p95", "p99"] as const
export type Order = (typeof orders)[number]

/** The order that a parameter names; by requests by default. */
export const orderOf = (given: string | undefined): Order => orders.find((order) => order === given) ?? "requests"

export interface Shown {
  readonly now: number
  readonly recent: Recent.Snapshot
  readonly window: WindowName
  readonly order: Order
}

interface Row {
  readonly name: string
  readonly counts: Recent.Counts
}

const quantileOf =
  (share: number) =>
  ({ counts }: Row) =>
    Recent.quantile(counts.latency, share) ?? 0

const values: Readonly<Record<Exclude<Order, "name">, (row: Row) => number>> = {
  requests: ({ counts }) => counts.requests,
  client: ({ counts }) => counts.clientErrors,
  server: ({ counts }) => counts.serverErrors,
  p50: quantileOf(0.5),
  p95: quantileOf(0.95),
  p99: quantileOf(0.99)
}

const byName = (one: Row, two: Row) => (one.name < two.name ? -1 : one.name > two.name ? 1 : 0)

const sorted = (rows: ReadonlyArray<Row>, order: Order) => {
  if (order === "name") return rows.toSorted(byName)
  const value = values[order]
  // Infinity less itself is no number.
  const difference = (one: Row, two: Row) => (value(one) === value(two) ? 0 : value(two) - value(one))
  return rows.toSorted((one, two) => difference(one, two) || byName(one, two))
}

const rowsOf = (counts: Readonly<Record<string, Recent.Counts>>): ReadonlyArray<Row> =>
  Object.entries(counts).map(([name, each]) => ({ name, counts: each }))

const tableOf = ({ order, window }: Shown, caption: string, first: string, rows: ReadonlyArray<Row>, none: string) => {
  const by = (id: Order, title: string) => ({
    title: html`<a href="${link("/ops/requests", { window: window === "day" ? window : undefined, sort: id })}"
      >${title}</a
    >`,
    sorted: order === id ? (id === "name" ? ("ascending" as const) : ("descending" as const)) : undefined
  })
  const latency = (id: "p50" | "p95" | "p99", share: number): Column<Row> => ({
    ...by(id, id),
    isNumber: true,
    value: ({ counts }) => Format.latency(Recent.quantile(counts.latency, share))
  })
  const errors = (id: "client" | "server", title: string, of: (counts: Recent.Counts) => number): Column<Row> => ({
    ...by(id, title),
    isNumber: true,
    value: ({ counts }) =>
      of(counts) === 0
        ? html`<span class="none">0</span>`
        : html`${Format.count(of(counts))} <small>${Format.share(of(counts), counts.requests)}</small>`
  })
  return table<Row>({
    caption,
    rows: sorted(rows, order),
    keyOf: ({ name }) => `${first} ${name}`,
    none,
    columns: [
      { ...by("name", first), isName: true, value: ({ name }) => html`<span class="id">${name}</span>` },
      { ...by("requests", "Requests"), isNumber: true, value: ({ counts }) => Format.count(counts.requests) },
      errors("client", "4xx", ({ clientErrors }) => clientErrors),
      errors("server", "5xx", ({ serverErrors }) => serverErrors),
      latency("p50", 0.5),
      latency("p95", 0.95),
      latency("p99", 0.99)
    ]
  })
}

const refusals = (refused: Readonly<Record<string, number>>) =>
  section(
    "refused",
    "Refused",
    table({
      caption: "Refused requests by reason",
      rows: Object.entries(refused).toSorted(([, one], [, two]) => two - one),
      keyOf: ([reason]) => reason,
      none: "No request was refused.",
      columns: [
        { title: "Reason", isName: true, value: ([reason]) => reasonText(reason) },
        { title: "Requests", isNumber: true, value: ([, count]) => Format.count(count) }
      ]
    })
  )

/** The page, below its heading. */
export const body = (shown: Shown): Html => {
  const { now, order, recent, window } = shown
  const { endpoints, organizations, refused } = recent[window]
  const slots = Chart.slotsOf(recent[window], spanOf[window], now)
  const none = `Nothing was requested in the last ${window}.`
  return html`${windowTabs("/ops/requests", window, { sort: order === "requests" ? undefined : order })}
    <div class="charts">${Chart.requests(recent[window], slots)}${Chart.latencies(slots)}</div>
    ${section("endpoints", "By endpoint", tableOf(shown, "Requests by endpoint", "Endpoint", rowsOf(endpoints), none))}
    ${section(
      "organizations",
      "By organization",
      tableOf(
        shown,
        "Requests by organization",
        "Organization",
        rowsOf(organizations),
        "No request had a valid API key or an organization."
      )
    )}
    ${refusals(refused)}
    <p>
      <small
        >Times that a client asked /changes to wait are left out. Counts are of this host, since its processes started;
        of many organizations, the most active ones are told apart.</small
      >
    </p>`
}
