/** The groups of organizations, each with a Postgres of its own, and the maps by which haproxy finds them. */
import { hash } from "node:crypto"
import { join } from "node:path"
import { Effect, FileSystem, Order, Schema, SchemaIssue } from "effect"
import { Reactivity } from "effect/reactivity"
import { connect, type Database } from "../../src/database/Database.ts"
import { safeReason } from "../../src/database/SqlFailure.ts"

/** The maps cannot be written; the message says why. Whatever was there before is still there. */
export class MapsRefused extends Schema.TaggedError<MapsRefused>()("MapsRefused", { message: Schema.String }) {}

/** A name that haproxy takes for a backend. */
const Name = Schema.String.check(Schema.isPattern(/^[A-Za-z0-9_.:-]{1,64}$/))

const Groups = Schema.Struct({
  /** The database of each group, by the name of its backend in haproxy.cfg. */
  groups: Schema.Record(Name, Schema.Struct({ database: Schema.RedactedFromValue(Schema.NonEmptyString) })),
  /** The organizations that are being moved, each with the group that still serves its reads. */
  moving: Schema.optionalKey(Schema.Record(Schema.String, Name))
})

const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(Groups), { errors: "all", onExcessProperty: "error" })
const issuesOf = SchemaIssue.makeFormatterStandardSchemaV1()

/** The places of what is wrong, and nothing else: the file has passwords in it, which a parser would quote. */
const placesOf = ({ issue }: Schema.SchemaError) =>
  issuesOf(issue)
    .issues.map(({ path = [] }) => path.map(String).join(".") || "the file as a whole")
    .join(", ")

const read = Effect.fnUntraced(function* (path: string) {
  const text = yield* (yield* FileSystem.FileSystem).readFileString(path)
  const { groups, moving = {} } = yield* Effect.mapError(
    decode(text),
    (error) => new MapsRefused({ message: `${path} is not what groups.json should be: ${placesOf(error)}` })
  )
  const unknown = Object.values(moving).find((group) => !Object.hasOwn(groups, group))
  if (Object.keys(groups).length === 0) return yield* new MapsRefused({ message: `${path} names no group` })
  if (unknown !== undefined) {
    const message = `${path}: moving names the group ${unknown}, which is none of its groups`
    return yield* new MapsRefused({ message })
  }
  return { groups, moving }
})

// Each value of the first column of an index, one descent for each.
const distinct = (table: string) => `
  select organization_id from (
    with recursive owner as (
      (select organization_id from ${table} order by organization_id limit 1)
      union all
      select (select t.organization_id from ${table} t where t.organization_id > owner.organization_id
              order by t.organization_id limit 1)
      from owner where owner.organization_id is not null
    ) select organization_id from owner where organization_id is not null
  ) ${table}_owners`

// An organization whose deliveries went elsewhere would keep what they delete: so it counts where it has any of these.
const owners = `
  select organization_id from organizations
  union select organization_id from api_keys where revoked_at is null
  union select organization_id from intake_secrets where revoked_at is null
  union ${distinct("invoices")}
  union ${distinct("invoice_lines")}`

/** The organizations of a group, and the hashes of its valid keys with theirs. */
const contents = Effect.fnUntraced(function* (sql: Database, group: string) {
  const organizations = yield* sql.unsafe<{ id: string }>(`select organization_id as id from (${owners}) owners`)
  const keys = yield* sql<{ organization: string; key: string }>`
    select organization_id as organization, upper(encode(key_hash, 'hex')) as key from api_keys
    where revoked_at is null order by organization_id, id`
  return { group, organizations: organizations.map(({ id }) => id), keys }
})

/** The SHA-256 of an organization's id as a header carries it; nothing for an id that no header can carry. */
export const hashOf = (organization: string): string | undefined =>
  // oxlint-disable-next-line no-control-regex -- these are what a header cannot have
  /^(?![ \t])[^\x00-\x08\x0a-\x1f\x7f\u0100-\uffff]+(?<![ \t])$/.test(organization)
    ? hash("sha256", Buffer.from(organization, "latin1"), "hex").toUpperCase()
    : undefined

/**
 * Writes `keys.map` and `organizations.map`, both or neither.
 *
 * @param file the path of `groups.json`
 * @param folder the folder of the maps, as haproxy.cfg names it
 * @returns how many keys and organizations they have
 */
export const writeMaps = Effect.fnUntraced(
  function* (file: string, folder: string) {
    const fs = yield* FileSystem.FileSystem
    const { groups, moving } = yield* read(file)
    const found = yield* Effect.forEach(Object.entries(groups), ([name, { database }]) =>
      connect({
        url: database,
        name: `the database of ${name}`,
        applicationName: "practice-data-maps",
        maxConnections: 1,
        connectTimeout: "10 seconds",
        statementTimeout: "5 minutes"
      }).pipe(
        Effect.flatMap((sql) => contents(sql, name)),
        Effect.mapError(
          (error) =>
            new MapsRefused({ message: `The database of ${name} does not say what it has: ${safeReason(error)}` })
        )
      )
    )

    /** The group that serves the reads of each organization. */
    const homes = new Map(Object.entries(moving))
    const inTwo: Array<string> = []
    for (const { group, organizations } of found) {
      for (const id of organizations.filter((each) => !Object.hasOwn(moving, each))) {
        const home = homes.get(id)
        if (home !== undefined) inTwo.push(`${id} (${home}, ${group})`)
        homes.set(id, group)
      }
    }
    if (inTwo.length > 0) {
      const more = inTwo.length > 10 ? `, and ${inTwo.length - 10} more` : ""
      const message = `Organizations that are in two groups: ${inTwo.slice(0, 10).join(", ")}${more}`
      return yield* new MapsRefused({ message })
    }

    // Deliveries for an organization that is being moved have a backend of their own.
    const organizations = [...homes].flatMap(([id, home]) => {
      const key = hashOf(id)
      return key === undefined ? [] : [`${key} ${Object.hasOwn(moving, id) ? "moving" : home}`]
    })
    const keys = found.flatMap(({ group, keys: valid }) =>
      valid.filter(({ organization }) => homes.get(organization) === group).map(({ key }) => `${key} ${group}`)
    )
    const maps = { keys, organizations: organizations.toSorted(Order.String) }
    const beside = (name: string) => join(folder, `${name}.map.${process.pid}`)
    for (const [name, lines] of Object.entries(maps)) {
      yield* Effect.addFinalizer(() => Effect.ignore(fs.remove(beside(name), { force: true })))
      yield* fs.writeFileString(beside(name), lines.map((line) => `${line}\n`).join(""), { mode: 0o640 })
    }
    for (const name of Object.keys(maps)) yield* fs.rename(beside(name), join(folder, `${name}.map`))
    return { keys: keys.length, organizations: organizations.length }
  },
  Effect.catchTag("PlatformError", ({ message }) => new MapsRefused({ message })),
  Effect.scoped,
  Effect.provide(Reactivity.layer)
)
