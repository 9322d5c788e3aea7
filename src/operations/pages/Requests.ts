/** `/ops/requests`: requests by endpoint and by organization. */
import { Effect } from "effect"
import { type Content, h } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { charts, type WindowName, windowLink, windowOf } from "../Chart.ts"
import { Watch } from "../Figures.ts"
import * as Format from "../Format.ts"
import { type Column, id, none, section, small, table } from "../Layout.ts"
import { page } from "../Page.ts"

interface Row extends Recent.Counts {
  readonly name: string
}

const latencyOf = (share: number) => ({
  value: ({ latency }: Row) => Recent.quantile(latency, share) ?? 0,
  shown: ({ latency }: Row) => Format.latency(Recent.quantile(latency, share))
})

const errorsOf = (value: (row: Row) => number) => ({
  value,
  shown: (row: Row) =>
    value(row) === 0 ? none("0") : [Format.count(value(row)), " ", small(Format.share(value(row), row.requests))]
})

/** The columns after the name: each orders the rows by its value, the highest first. */
const orders = {
  requests: { title: "Requests", value: (row: Row) => row.requests, shown: (row: Row) => Format.count(row.requests) },
  client: { title: "4xx", ...errorsOf((row) => row.clientErrors) },
  server: { title: "5xx", ...errorsOf((row) => row.serverErrors) },
  p50: { title: "p50", ...latencyOf(0.5) },
  p95: { title: "p95", ...latencyOf(0.95) },
  p99: { title: "p99", ...latencyOf(0.99) }
}
const names = ["requests", "client", "server", "p50", "p95", "p99"] as const

type Order = (typeof names)[number] | "name"

const byName = (one: Row, two: Row) => (one.name < two.name ? -1 : 1)

const sorted = (rows: ReadonlyArray<Row>, order: Order) => {
  if (order === "name") return rows.toSorted(byName)
  const { value } = orders[order]
  // Equal values first: infinity minus infinity is not a number.
  return rows.toSorted((one, two) => (value(one) === value(two) ? byName(one, two) : value(two) - value(one)))
}

interface Data {
  readonly recent: Recent.Snapshot
  readonly window: WindowName
  readonly order: Order
}

const byEach = (
  { order, window }: Data,
  first: "Endpoint" | "Organization",
  counts: Readonly<Record<string, Recent.Counts>>,
  empty: string
) => {
  const head = (sort: Order, title: string) => ({
    title: h("a", { href: windowLink("/ops/requests", window, { sort }) }, title),
    sorted: order !== sort ? undefined : sort === "name" ? ("ascending" as const) : ("descending" as const)
  })
  const columns: ReadonlyArray<Column<Row>> = [
    { ...head("name", first), value: ({ name }) => id(name) },
    ...names.map((name) => ({ ...head(name, orders[name].title), value: orders[name].shown, isNumber: true }))
  ]
  const rows = sorted(
    Object.entries(counts).map(([name, each]) => ({ name, ...each })),
    order
  )
  const caption = `Requests by ${first.toLowerCase()}`
  return section(first, `By ${first.toLowerCase()}`, table({ caption, rows, key: ({ name }) => name, empty, columns }))
}

const refusals = (refused: Readonly<Record<string, number>>) =>
  table({
    caption: "Refused requests by reason",
    rows: Object.entries(refused).toSorted(([, one], [, two]) => two - one),
    key: ([name]) => name,
    empty: "No request was refused.",
    columns: [
      { title: "Reason", value: ([name]) => Format.reason(name) },
      { title: "Requests", isNumber: true, value: ([, count]) => Format.count(count) }
    ]
  })

const view = (data: Data, now: number): Content => {
  const { order, recent, window } = data
  const { endpoints, organizations, refused } = recent[window]
  const sort = order === "requests" ? undefined : order
  return [
    charts(recent, window, now, (name) => windowLink("/ops/requests", name, { sort })),
    byEach(data, "Endpoint", endpoints, `No requests in the last ${window}.`),
    byEach(data, "Organization", organizations, "No request of a known organization."),
    section("refused", "Refused", refusals(refused)),
    h(
      "p",
      {},
      small(
        "Counted on this host since its processes started. Latencies leave out the time that clients ask /changes to wait.",
        " The most active organizations are listed by name, the rest as others."
      )
    )
  ]
}

export const route = Effect.gen(function* () {
  const { look } = yield* Watch
  return page(
    "/ops/requests",
    (parameter) =>
      Effect.map(look, ({ processes }) => ({
        recent: Recent.merge(processes.map((one) => one.recent)),
        window: windowOf(parameter),
        order: ["name" as const, ...names].find((order) => order === parameter("sort")) ?? "requests"
      })),
    view
  )
})
