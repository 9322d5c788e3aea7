/** The alerts as a file of rules for Prometheus. */
import { type Alert, evaluationInterval, scrapeInterval, severities } from "./Alert.ts"
import { alerts } from "./alerts.ts"

const text = (value: string) => `'${value.replaceAll("'", "''")}'`

/** Where the runbook has the alert: an anchor in the README. */
export const anchorOf = ({ name }: Pick<Alert, "name">) => name.toLowerCase()

const rule = (alert: Alert) => [
  `      - alert: ${alert.name}`,
  `        expr: ${text(alert.expression)}`,
  ...(alert.for === 0 ? [] : [`        for: ${alert.for}s`]),
  `        labels:`,
  `          severity: ${alert.severity}`,
  `        annotations:`,
  `          summary: ${text(alert.summary)}`,
  `          description: ${text(`${alert.means} ${alert.act}`)}`,
  `          runbook_url: ${text(`README.md#${anchorOf(alert)}`)}`
]

/** The rules, of each severity in a group that is evaluated as often as it needs. */
export const rules = () =>
  [
    `# Made from scripts/operations/alerts by \`npm run generate\`. They assume a scrape interval of ${scrapeInterval} seconds.`,
    "groups:",
    ...severities.flatMap((severity) => [
      `  - name: practice-data-${severity}`,
      `    interval: ${evaluationInterval[severity]}s`,
      "    rules:",
      ...alerts.filter((alert) => alert.severity === severity).flatMap(rule)
    ]),
    ""
  ].join("\n")
