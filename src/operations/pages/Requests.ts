/** `/ops/requests`: requests by endpoint, by organization, and by the reason of their refusal. */
import { Effect } from "effect"
import * as Recent from "../../observability/Recent.ts"
import { charts, windowOf } from "../Chart.ts"
import { Watch } from "../Figures.ts"
import * as Format from "../Format.ts"
import { id, section, small, table } from "../Layout.ts"
import * as Page from "../Page.ts"

const path = "/ops/requests"

type Row = readonly [name: string, counts: Recent.Counts]

const countsBy = (key: string, first: string, counts: Recent.Rows) => {
  const errors = (of: (counts: Recent.Counts) => number) => ({
    number: ([, one]: Row) => [Format.count(of(one)), " ", small(Format.share(of(one), one.requests))]
  })
  const rank = (share: number) => ({
    number: ([, { latency }]: Row) => Format.latency(Recent.quantile(latency, share))
  })
  const content = table<Row>({
    caption: `Requests by ${first}`,
    rows: counts.toSorted(([, one], [, two]) => two.requests - one.requests),
    columns: {
      [first]: ([name]) => id(name),
      Requests: { number: ([, { requests }]) => Format.count(requests) },
      "4xx": errors(({ clientErrors }) => clientErrors),
      "5xx": errors(({ serverErrors }) => serverErrors),
      p50: rank(0.5),
      p95: rank(0.95),
      p99: rank(0.99)
    }
  })
  return section(key, `By ${first}`, content)
}

export const page = Page.page(
  path,
  Effect.fnUntraced(function* (parameter) {
    const { look } = yield* Watch
    const recent = Recent.merge((yield* look).processes.map((one) => one.recent))
    const window = windowOf(parameter)
    const { endpoints, organizations, refusals } = recent[window]
    return (now) => [
      charts(recent, window, now, path),
      countsBy("endpoints", "endpoint", endpoints),
      countsBy("organizations", "organization", organizations),
      countsBy("refused", "reason of refusal", refusals),
      small(
        "Counted on this host since its processes started, the most active first. Latencies leave out the time that clients ask /changes to wait.",
        " The most active organizations are listed by name, the rest as others."
      )
    ]
  })
)
