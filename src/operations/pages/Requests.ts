/** `/ops/requests`: requests by endpoint and by organization. */
import { Effect } from "effect"
import { link } from "../../http/Html.ts"
import * as Recent from "../../observability/Recent.ts"
import { charts, windowOf } from "../Chart.ts"
import { Watch } from "../Figures.ts"
import * as Format from "../Format.ts"
import { id, none, section, small, table } from "../Layout.ts"
import * as Page from "../Page.ts"

const path = "/ops/requests"

interface Row extends Recent.Counts {
  readonly name: string
}

const rank = (share: number) => ({
  value: ({ latency }: Row) => Recent.quantile(latency, share) ?? 0,
  number: ({ latency }: Row) => Format.latency(Recent.quantile(latency, share))
})

const errors = (value: (row: Row) => number) => ({
  value,
  number: (row: Row) =>
    value(row) === 0 ? none("0") : [Format.count(value(row)), " ", small(Format.share(value(row), row.requests))]
})

/** The columns after the name. Each orders the rows by its value, the highest first. */
const columns = {
  Requests: { value: ({ requests }: Row) => requests, number: ({ requests }: Row) => Format.count(requests) },
  "4xx": errors(({ clientErrors }) => clientErrors),
  "5xx": errors(({ serverErrors }) => serverErrors),
  p50: rank(0.5),
  p95: rank(0.95),
  p99: rank(0.99)
}

const sorted = (counts: Recent.Rows, order: string) => {
  const rows = counts.map(([name, each]): Row => ({ name, ...each }))
  const byName = rows.toSorted((one, two) => (one.name < two.name ? -1 : 1))
  const value = Object.entries(columns).find(([name]) => name === order)?.[1].value ?? (() => 0)
  return byName.toSorted((one, two) => value(two) - value(one))
}

const refusals = (rows: Recent.Rows) =>
  table({
    caption: "Refused requests by reason",
    rows: rows.toSorted(([, one], [, two]) => two.requests - one.requests),
    key: ([reason]) => reason,
    empty: "No request was refused.",
    columns: {
      Reason: ([reason]) => Format.name(reason),
      Requests: { number: ([, { requests }]) => Format.count(requests) }
    }
  })

export const page = Page.page(
  path,
  Effect.fnUntraced(function* (parameter) {
    const { look } = yield* Watch
    const recent = Recent.merge((yield* look).processes.map((one) => one.recent))
    const window = windowOf(parameter)
    const order = parameter("sort") ?? "Requests"
    const tableOf = (first: string, counts: Recent.Rows, empty: string) => {
      const title = `By ${first.toLowerCase()}`
      const content = table<Row>({
        caption: `Requests ${title}`,
        rows: sorted(counts, order),
        key: ({ name }) => name,
        empty,
        columns: { [first]: ({ name }) => id(name), ...columns },
        sort: {
          order: order === "name" ? first : order,
          link: (column) => link(path, { window, sort: column === first ? "name" : column })
        }
      })
      return section(first, title, content)
    }
    return (now) => [
      charts(recent, window, now, path, { sort: order }),
      tableOf("Endpoint", recent[window].endpoints, `No requests in the last ${window}.`),
      tableOf("Organization", recent[window].organizations, "No request of a known organization."),
      section("refused", "Refused", refusals(recent[window].refusals)),
      small(
        "Counted on this host since its processes started. Latencies leave out the time that clients ask /changes to wait.",
        " The most active organizations are listed by name, the rest as others."
      )
    ]
  })
)
