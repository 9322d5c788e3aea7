/** The payment processor account that is connected to a clinic. */
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export default Effect.flatMap(
  SqlClient.SqlClient,
  (sql) => sql`alter table clinics add column processor_account text collate "C"`
)
