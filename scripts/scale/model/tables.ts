/** The tables of the page, as Markdown. */
import { assumed, type Figure, known, limits } from "./figures.ts"
import { measured } from "./measured.ts"
import { fewestGroups, type Load, needs, others, pressure, sizes } from "./model.ts"

const steps = [1, 10, 100, 1000, 10_000, 100_000] as const

const thousands = (value: number) => value.toLocaleString("en-US", { maximumFractionDigits: 0 })

const short = (value: number) => {
  if (value === 0) return "0"
  if (value >= 100) return thousands(Number(value.toPrecision(2)))
  const digits = Number(value.toPrecision(2))
  return digits < 0.001 ? "< 0.001" : String(digits)
}

const row = (cells: ReadonlyArray<string>) => `| ${cells.join(" | ")} |`

/** @param numbers the columns that are set to the right; all but the first by default */
const table = (
  head: ReadonlyArray<string>,
  rows: ReadonlyArray<ReadonlyArray<string>>,
  numbers: ReadonlyArray<number> = head.map((_, index) => index).slice(1)
) => [row(head), row(head.map((_, index) => (numbers.includes(index) ? "---:" : "---"))), ...rows.map(row)].join("\n")

const loadOf = (organizations: number): Load => ({
  organizations,
  records: organizations * assumed.records.value
})

const at = (title: string, cell: (load: Load) => string) => [title, ...steps.map((step) => cell(loadOf(step)))]

const percent = (share: number) => (share < 0.01 ? "under 1 %" : `${short(share * 100)} %`)

const first = (load: Load) => {
  const [tightest] = pressure(load)
  return tightest === undefined ? "" : `${tightest.name}, ${percent(tightest.share)}`
}

const second = (load: Load) => {
  const [, next] = pressure(load)
  return next === undefined ? "" : `${next.name}, ${percent(next.share)}`
}

const onePostgres = () =>
  table(
    ["organizations", ...steps.map(thousands)],
    [
      at("records", ({ records }) => thousands(records)),
      at("disk, TB", (load) => short(needs(load).disk)),
      at("restore, hours", (load) => short(needs(load).restore)),
      at("dump, hours", (load) => short(others(load).dumpHours)),
      at("index of the largest table, hours", (load) => short(needs(load).index)),
      at("vacuum of the largest table, hours", (load) => short(others(load).vacuumHours)),
      at("polls a second, busiest hour", (load) => short(others(load).pollsPerSecond)),
      at("cores of Postgres, busiest hour", (load) => short(needs(load).cores)),
      at("processes of the service", (load) => short(others(load).processes)),
      at("connections", (load) => short(needs(load).connections)),
      at("workers for the deletions", (load) => short(others(load).workers)),
      at("deletion tasks of a year, GB", (load) => short(others(load).taskGigabytesOfYear)),
      at("API keys, MB", (load) => short(others(load).keysMegabytes)),
      at("limit that is nearest", first),
      at("and next", second)
    ]
  )

const largest = (groups: ReadonlyArray<Load>) => groups.reduce((most, group) => Math.max(most, group.records), 0)

/** Another skew than the assumed one, to see what depends on it. */
const steeper = 1

const alone = ([records = 0]: ReadonlyArray<number>) => first({ organizations: 1, records })

const inGroups = () => {
  const found = steps.map((step) => {
    const all = sizes(step)
    return { all, groups: fewestGroups(all) }
  })
  const cell = (of: (groups: ReadonlyArray<Load>) => string) =>
    found.map(({ groups }) => (groups === undefined ? "none is enough" : of(groups)))
  return table(
    ["organizations", ...steps.map(thousands)],
    [
      ["records of the largest organization", ...found.map(({ all }) => short(all[0] ?? 0))],
      ["its nearest limit", ...found.map(({ all }) => alone(all))],
      [`the same with exponent ${steeper}: records`, ...steps.map((step) => short(sizes(step, steeper)[0] ?? 0))],
      ["its nearest limit", ...steps.map((step) => alone(sizes(step, steeper)))],
      ["groups", ...cell((groups) => thousands(groups.length))],
      ["records of the largest group", ...cell((groups) => short(largest(groups)))],
      [
        "organizations of a group, fewest",
        ...cell((groups) => thousands(Math.min(...groups.map((group) => group.organizations))))
      ],
      ["and most", ...cell((groups) => thousands(Math.max(...groups.map((group) => group.organizations))))],
      ["maps in haproxy, MB", ...steps.map((step) => short(others(loadOf(step)).mapsMegabytes))]
    ]
  )
}

const figures = (list: Readonly<Record<string, Figure>>) =>
  table(
    ["what", "value", "unit", "source"],
    Object.values(list).map(({ source, unit, value, what }) => [
      what,
      value >= 1000 ? thousands(value) : String(Number(value.toPrecision(3))),
      unit,
      source
    ]),
    [1]
  )

const sized = () => {
  const { figures: of } = measured
  return table(
    ["measured", ""],
    [
      ["a record: table, indexes, bytes", `${thousands(of.recordTableBytes)}, ${thousands(of.recordIndexBytes)}`],
      [
        `a consumption log: table, ${of.logIndexes} indexes, bytes`,
        `${thousands(of.logTableBytes)}, ${thousands(of.logIndexBytes)}`
      ],
      ["what a hard delete leaves for readers of changes, bytes", thousands(of.removalBytes)],
      ["look-up of a key among 1,000 and 1,000,000, µs of CPU", `${of.lookUpMicros1000}, ${of.lookUpMicros1000000}`],
      ["memory of a session of Postgres that has read, KiB", thousands(of.sessionKilobytes)],
      [
        "`maps.ts` with 1,000,000 keys of 100,000 organizations: seconds of CPU, MiB",
        `${of.mapsCpuSeconds}, ${of.mapsMegabytes}`
      ],
      ["a line of keys.map and of organizations.map, bytes", `${of.keyMapBytes}, ${of.organizationMapBytes}`],
      [
        "haproxy without maps, with these, after they were replaced, MiB",
        `${of.haproxyMegabytesEmpty}, ${of.haproxyMegabytes}, ${of.haproxyMegabytesAfterUpdate}`
      ],
      [
        "haproxy: start with these maps, replacing them, seconds of CPU",
        `${of.haproxyStartCpuSeconds}, ${of.haproxyUpdateCpuSeconds}`
      ]
    ]
  )
}

/** The tables by their names in the page. */
export const tables = (): Readonly<Record<string, string>> => ({
  "one-postgres": onePostgres(),
  groups: inGroups(),
  sizes: sized(),
  known: figures(known),
  assumed: figures(assumed),
  limits: figures(limits)
})
