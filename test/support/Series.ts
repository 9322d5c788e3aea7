/** Time series, and the text in which a service tells the newest sample of each. */

export type Labels = Readonly<Record<string, string>>

/** A value at a time in seconds. Without a value, the series ends there. */
export interface Sample {
  readonly time: number
  readonly value: number | undefined
}

/** A series: its labels, `__name__` among them, and its samples from the oldest to the newest. */
export interface Series {
  readonly labels: Labels
  readonly samples: ReadonlyArray<Sample>
}

/** One text for equal labels. */
export const keyOf = (labels: Labels) =>
  Object.entries(labels)
    .filter(([, value]) => value !== "")
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, value]) => `${name}\u0000${value}`)
    .join("\u0001")

/** A sample of the text format of Prometheus. */
export interface Exposed {
  readonly labels: Labels
  readonly value: number
}

const escapes: Readonly<Record<string, string>> = { "\\\\": "\\", '\\"': '"', "\\n": "\n" }

const numberOf = (text: string) =>
  text === "+Inf" ? Number.POSITIVE_INFINITY : text === "-Inf" ? Number.NEGATIVE_INFINITY : Number(text)

/** Reads the text format of Prometheus, version 0.0.4. */
export const readText = (text: string): ReadonlyArray<Exposed> =>
  text.split("\n").flatMap((line) => {
    const found = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)(?: -?\d+)?$/.exec(line)
    if (found === null) return []
    const [, name = "", inner = "", value = ""] = found
    const labels = [...inner.matchAll(/([a-zA-Z_]\w*)="((?:[^"\\]|\\.)*)"/g)].map(
      ([, label = "", escaped = ""]) =>
        [label, escaped.replaceAll(/\\./g, (escape) => escapes[escape] ?? escape)] as const
    )
    return [{ labels: { ...Object.fromEntries(labels), __name__: name }, value: numberOf(value) }]
  })

/** A store of series that grows with each scrape. */
export class Store {
  readonly #series = new Map<string, { readonly labels: Labels; samples: Array<Sample> }>()
  readonly #byTarget = new Map<string, Set<string>>()
  readonly #keep: number

  /** @param keep how long samples are kept, in seconds */
  constructor(keep: number) {
    this.#keep = keep
  }

  /** Takes what a target told at a time. What it no longer tells ends there. */
  add(target: string, time: number, exposed: ReadonlyArray<Exposed>) {
    const told = new Set<string>()
    for (const { labels, value } of exposed) {
      const key = keyOf(labels)
      told.add(key)
      this.#append(key, labels, { time, value })
    }
    for (const key of this.#byTarget.get(target) ?? []) {
      const series = this.#series.get(key)
      if (!told.has(key) && series !== undefined) this.#append(key, series.labels, { time, value: undefined })
    }
    this.#byTarget.set(target, told)
  }

  #append(key: string, labels: Labels, sample: Sample) {
    const series = this.#series.get(key) ?? { labels, samples: [] }
    series.samples.push(sample)
    if ((series.samples[0]?.time ?? 0) < sample.time - 2 * this.#keep) {
      series.samples = series.samples.filter(({ time }) => time >= sample.time - this.#keep)
    }
    this.#series.set(key, series)
  }

  all(): ReadonlyArray<Series> {
    return [...this.#series.values()]
  }
}
