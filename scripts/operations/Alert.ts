/** What an alert is, and what all of them assume. */

/** The job of the service in the configuration of Prometheus. */
export const job = "practice-data"

/** How often each process is scraped, in seconds. The ranges of the queries assume it. */
export const scrapeInterval = 5

export const severities = ["page", "ticket"] as const
export type Severity = (typeof severities)[number]

/** How often the alerts of a severity are evaluated, in seconds: a fault is to be seen within 15. */
export const evaluationInterval: Readonly<Record<Severity, number>> = { page: 1, ticket: 2 }

/** An alert, with its entry in the runbook. */
export interface Alert {
  readonly name: string
  /** `page`: somebody has to look at once. `ticket`: in working hours. */
  readonly severity: Severity
  /** PromQL that has a result for each thing that is wrong. */
  readonly expression: string
  /** For how long it must have a result, in seconds. */
  readonly for: number
  /** What is wrong and where, with the labels of the result: `{{ $labels.instance }}`, `{{ $value | humanize }}`. */
  readonly summary: string
  /** What it means, for the runbook. */
  readonly means: string
  /** What to do, for the runbook. */
  readonly act: string
}

/** The results of a query, without those of an instance that has, or had within two minutes, no database. */
export const unlessDatabaseDown = (expression: string) =>
  `${expression} unless on (instance) min_over_time(practice_data_dependency_up{dependency!="processor"}[2m]) == 0`

/** How much a counter grew in all processes of an instance. */
export const grew = (counter: string, range = "2m") => `sum without (process) (increase(${counter}[${range}]))`

/** A quantile of a histogram over all processes of an instance. */
export const quantile = (q: number, histogram: string, range = "1m") => {
  const [name = "", matchers = ""] = histogram.split(/(?=\{)/)
  return `histogram_quantile(${q}, sum without (process) (rate(${name}_bucket${matchers}[${range}])))`
}
