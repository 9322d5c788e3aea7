/** The timeouts that operators and clients are promised. */
import { assert, it } from "@effect/vitest"
import { Option, Redacted } from "effect"
import { sessionSettings } from "../../../src/database/Database.ts"
import { poolsOf } from "../../../src/database/Databases.ts"

const url = Redacted.make("postgres://localhost")
const none = Option.none()
const settings = { databaseUrl: Option.some(url), readDatabaseUrl: none, credentialsDatabaseUrl: none, dataDir: "" }
const pools = poolsOf({ ...settings, migrate: none, poolSize: 9 }, url, "1 second")

it.each([
  // A lock is given up before the two seconds of a caller are over.
  [
    "reads",
    pools.records,
    { statement_timeout: "5000", lock_timeout: "800", enable_seqscan: "off", enable_bitmapscan: "off", jit: "off" }
  ],
  ["keys", pools.credentials, { statement_timeout: "5000", lock_timeout: "800" }],
  // A delivery may name ten thousand invoices. The locks of a worker that was killed are freed within a second.
  ["deliveries", pools.tasks, { statement_timeout: "60000", client_connection_check_interval: "500" }]
])("sessions for %s have these timeouts", (_, pool, expected) => {
  assert.deepStrictEqual(sessionSettings(pool), { TimeZone: "UTC", ...expected })
})
