/** The quick starts at the top of the documentation, as markdown, and the examples of its requests. */
import { Predicate, String as Text } from "effect"
import type { Operation } from "../api/openapi/Parsed.ts"

/** The access that their commands use. */
export interface Access {
  readonly organization: string
  readonly key: string
}

const placeholder: Access = { organization: "org_1", key: "<your API key>" }

const block = (language: string, code: string) => `\`\`\`${language}\n${code}\n\`\`\``

const address = "http://127.0.0.1:3000"

const install =
  "Your operator gives you both packages as files; no registry has them. With `--no`, npx runs what is installed, and never downloads."

/** The quick start of the data API. */
export const dataApi = ({ key }: Access = placeholder): string =>
  `## Quick start

Read with **curl**:

${block(
  "sh",
  `export PRACTICE_DATA_URL=${address} PRACTICE_DATA_API_KEY='${key}'
curl -s "$PRACTICE_DATA_URL/api/v3/charges/search" -H "Authorization: Bearer $PRACTICE_DATA_API_KEY" \\
  -H 'Content-Type: application/json' -d '{"status":"open","limit":2}'`
)}

Read from **TypeScript** or JavaScript, with retries, pages and types. The examples below use this \`client\`:

${block(
  "ts",
  `// npm install ./practice-data-client-0.1.0.tgz
import { PracticeData } from "practice-data-client"

const client = new PracticeData({ baseUrl: "${address}", apiKey: "${key}" })
for await (const charge of client.charges.all({ status: "open" })) console.log(charge.id, charge.outstanding_balance)`
)}

**Keep a copy** in Postgres, SQLite, NDJSON or Parquet. The first run copies everything; each later run applies the changes:

${block(
  "sh",
  `npm install ./practice-data-0.1.0.tgz
npx --no practice-data sync sqlite:practice.db`
)}

**Send deletions** of invoices to the [intake](/api/v1/docs#quick-start). ${install}

For **Python, dlt and Airbyte**, take the files of [connectors](docs/connectors).`

/** The quick start of the intake. */
export const intake = ({ organization }: Access = placeholder): string =>
  `## Quick start

Send a deletion with **curl**. Send it again with the same \`Idempotency-Key\` as often as you like: it is stored once.

${block(
  "sh",
  `export PRACTICE_DATA_URL=${address}
curl -s "$PRACTICE_DATA_URL/api/v1/invoice-deletions" -H 'X-Organization-Id: ${organization}' \\
  -H 'Idempotency-Key: delivery-1' -H 'Content-Type: application/json' \\
  -d '{"invoices":[{"invoice_id":"invoice_oakridge_0001"}]}'`
)}

From **TypeScript** or JavaScript, with retries, and signed if you pass a \`secret\`. The examples below use this \`sender\`:

${block(
  "ts",
  `// npm install ./practice-data-client-0.1.0.tgz
import { InvoiceDeletions } from "practice-data-client"

const sender = new InvoiceDeletions({ baseUrl: "${address}", organization: "${organization}" })
const deletions = { invoices: [{ invoice_id: "invoice_oakridge_0003" }] }
console.log(await sender.send(deletions, { idempotencyKey: "delivery-2" }))`
)}

From the **command line**, to try it; with \`PRACTICE_DATA_API_KEY\`, \`--wait\` prints the outcome:

${block(
  "sh",
  `npm install ./practice-data-0.1.0.tgz
npx --no practice-data send --organization ${organization} --invoice invoice_oakridge_0004`
)}

${install} From **Python**, send with the file of [connectors](docs/connectors).`

/** A value as it stands in TypeScript. */
const source = (value: unknown) =>
  JSON.stringify(value, null, 1)
    .replaceAll(/\n\s*/g, " ")
    .replaceAll(/"(\w+)":/g, "$1:")
    .replaceAll("[ ", "[")
    .replaceAll(" ]", "]")

/** A request with curl. Its variables are those of the quick start. */
export const curlExample = (method: string, path: string, operation: Operation, body: unknown): string => {
  const lines = [
    `curl -s "$PRACTICE_DATA_URL${path}"`,
    ...(operation.security.length > 0 ? ['-H "Authorization: Bearer $PRACTICE_DATA_API_KEY"'] : []),
    ...operation.parameters.flatMap(({ examples, name }) =>
      examples ? [`-H '${name}: ${String(examples.demo.value)}'`] : []
    ),
    ...(method === "POST" ? ["-H 'Content-Type: application/json'", `-d '${JSON.stringify(body)}'`] : [])
  ]
  return lines.join(" \\\n  ")
}

/** The same with our client, where it has a method for it. */
export const clientExample = ({ operationId }: Operation, body: unknown): string | undefined => {
  const [name = "", verb] = operationId.split(".")
  const resource = name.startsWith("psp") ? `psp.${Text.uncapitalize(name.slice(3))}` : name
  if (resource === "changes") return `for await (const page of client.changes(cursor)) console.log(page)`
  switch (verb) {
    case "schedule":
      return `await sender.send(${source(body)}, { idempotencyKey: "delivery-1" })`
    case "changes":
      return `for await (const page of client.${resource}.changes(cursor)) console.log(page)`
    case "search":
      return `await client.${resource}.search(${source(body)})`
    case "get": {
      const isById = Predicate.hasProperty(body, "id")
      return `await client.${resource}.get(${isById ? source(body.id) : resource === "organization" ? "" : source(body)})`
    }
    default:
      return undefined
  }
}
