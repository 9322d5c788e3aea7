// A project without TypeScript: every entry can be imported, and the client of promises reads.
import { strictEqual } from "node:assert"
import { NotFoundError, PracticeData } from "practice-data/client"

const client = new PracticeData({ baseUrl: process.env.PRACTICE_DATA_URL, apiKey: "pda_demo_oakridge" })
let count = 0
for await (const charge of client.charges.all({ status: "open" }, { pageSize: 10 })) {
  strictEqual(charge.status, "open")
  count += 1
}
strictEqual(count > 10, true)
const error = await client.charges.get("charge_nowhere").catch((reason) => reason)
strictEqual(error instanceof NotFoundError, true)

const { DataApi, charges } = await import("practice-data")
const { App } = await import("practice-data/server")
const { build } = await import("practice-data/testing")
strictEqual(typeof DataApi, "function")
strictEqual(build(charges, { id: "charge_1" }).id, "charge_1")
strictEqual(typeof App.dataApi, "object")
