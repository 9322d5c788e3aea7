/** The organizations: their list, and the creation of one by an operator. */
import { Effect, Schema } from "effect"
import { isoTime, rowsOf } from "../database/Columns.ts"
import { CredentialDatabase, type Database, TaskDatabase } from "../database/Database.ts"
import { audited } from "./Commands.ts"

type Named = Readonly<Record<"id" | "name", string>>

/** Creates the record of an organization. False if it has one. */
export const create = audited(
  TaskDatabase,
  "organization.create",
  Effect.fnUntraced(function* ({ id, name }: Named) {
    const sql = yield* TaskDatabase
    const row = { organization_id: id, id, name }
    const created = yield* sql`insert into organizations ${sql.insert(row)} on conflict do nothing returning 1`
    return created.length > 0
  }),
  (isNew, { id }) => (isNew ? [id, id, "created"] : undefined)
)

const Organization = Schema.Struct({
  id: Schema.String,
  name: Schema.NullOr(Schema.String),
  created_at: Schema.String
})

const countsOf = rowsOf(Schema.Struct({ id: Schema.String, count: Schema.Int }))

/** Lists organizations by their id, with the numbers of their valid keys and secrets. */
export const list = Effect.fn("Organizations.list")(function* (limit: number) {
  const [sql, credentials] = [yield* TaskDatabase, yield* CredentialDatabase]
  const rows = yield* rowsOf(Organization)(
    sql`
      select id, left(name, 400) as name, ${sql.literal(isoTime("created_at"))} from organizations
      order by organization_id limit ${sql.literal(String(limit))}`.unprepared
  )
  const ids = rows.map(({ id }) => id)
  const valid = (database: Database, table: "api_keys" | "intake_secrets") =>
    Effect.map(
      countsOf(database`
        select organization_id as id, count(*)::integer as count from ${database(table)}
        where organization_id = any (${ids}::text[]) and revoked_at is null group by organization_id`),
      (counts) => new Map(counts.map(({ count, id }) => [id, count]))
    )
  const [keys, secrets] = [yield* valid(credentials, "api_keys"), yield* valid(sql, "intake_secrets")]
  return rows.map((each) => ({ ...each, keys: keys.get(each.id) ?? 0, secrets: secrets.get(each.id) ?? 0 }))
})
