/** The statements of changes. */
import { Change, type Stamp } from "./History.ts"
import { ledgers, type Organizations, type Room } from "./Room.ts"

/** A statement with its parameters. */
export interface Statement {
  readonly text: string
  readonly params?: ReadonlyArray<unknown>
}

type Ids = ReadonlyArray<string>

/** Where versions come from: one sequence for all tables. */
export const sequence = "sync_versions"

const version = `'v' || nextval('${sequence}')`

const where = (ids: Ids | undefined) =>
  `where organization_id = $1${ids === undefined ? "" : " and id = any($2::text[])"}`

const arrayOf = (ids: Ids) => `'{${ids.join(",")}}'::text[]`

const upsert = (ledger: string) =>
  `insert into ${ledger} (organization_id, id, status) select $1, id, version from versions
   on conflict (organization_id, id) do update set status = excluded.status`

const one = (text: string, ...params: ReadonlyArray<unknown>): ReadonlyArray<Statement> => [{ text, params }]

/**
 * The statements of a change, for the organization `$1` of a room. A version is taken while its row is locked, so that higher
 * versions of a record are committed later.
 */
export const statementsOf = (
  { kind: { also, label, table, time }, organization: at }: Room,
  organizations: Organizations,
  change: Change
): ReadonlyArray<Statement> => {
  const organization = organizations[at]
  /** The columns that a write sets, as SQL. */
  const written = (stamp: Stamp): Readonly<Record<string, string>> => {
    const value = stamp === "now()" ? stamp : `clock_timestamp() + interval '${stamp} milliseconds'`
    return { [label]: version, ...(time !== undefined && stamp !== "left" && { [time]: value }) }
  }
  const assigned = (stamp: Stamp) =>
    Object.entries(written(stamp))
      .map(([column, value]) => `${column} = ${value}`)
      .join(", ")
  const onRecords = (text: string, ids: Ids | undefined) =>
    one(`${text} ${where(ids)}`, organization, ...(ids === undefined ? [] : [ids]))
  const update = (set: string, ids: Ids | undefined) => onRecords(`update ${table} set ${set}`, ids)
  const remove = (ids: Ids | undefined) => onRecords(`delete from ${table}`, ids)
  const insert = (ids: Ids, stamp: Stamp, onConflict: string) => {
    const columns = { ...also, ...written(stamp) }
    return one(
      `insert into ${table} (organization_id, id, ${Object.keys(columns).join(", ")})
       select $1, id, ${Object.values(columns).join(", ")} from unnest($2::text[]) id ${onConflict}`,
      organization,
      ids
    )
  }
  const rekey = (column: "id" | "organization_id", id: string, value: string, stamp: Stamp) => {
    const set = `set ${column} = $3, ${assigned(stamp)}`
    return one(`update ${table} ${set} where organization_id = $1 and id = $2`, organization, id, value)
  }
  return Change.$match(change, {
    Insert: ({ ids, onConflict, stamp }) => {
      const set = `on conflict (organization_id, id) do update set ${assigned(stamp)}`
      return insert(ids, stamp, { fail: "", "do nothing": "on conflict do nothing", update: set }[onConflict])
    },
    // The file of a COPY is known before the rows are locked; a row with the same id then makes it fail.
    Copy: ({ ids, stamp }) => {
      const columns = written(stamp)
      const texts = Object.values(columns).map((value) => `(${value})::text`)
      return one(`do $do$
        declare file text;
        begin
          select string_agg(concat_ws(E'\\t', '${organization}', id, ${texts.join(", ")}), E'\\n')
            into file from unnest(${arrayOf(ids)}) id;
          execute format(
            'copy ${table} (organization_id, id, ${Object.keys(columns).join(", ")}) from program %L',
            'cat <<"END"' || E'\\n' || file || E'\\nEND');
        end $do$`)
    },
    Update: ({ ids, stamp }) => update(assigned(stamp), ids),
    Nest: ({ ids, stamp }) =>
      one(`do $do$ begin
        for n in 1..70 loop
          begin
            update ${table} set ${assigned(stamp)}
            where organization_id = '${organization}' and id = (${arrayOf(ids)})[1 + n % ${ids.length}];
          exception when unique_violation then null;
          end;
        end loop;
      end $do$`),
    Touch: ({ ids }) => update(`${label} = ${label}`, ids),
    Mark: ({ ids, stamp }) => update(`is_deleted = not is_deleted, ${assigned(stamp)}`, ids),
    Delete: ({ ids }) => remove(ids),
    Replace: ({ ids, stamp }) => [...remove(ids), ...insert(ids, stamp, "")],
    Pair: ({ ids, isDelete }) => {
      const [first, second] = ledgers
      if (isDelete)
        return onRecords(`with one as (delete from ${first.table} ${where(ids)}) delete from ${second.table}`, ids)
      return one(
        `with versions as materialized (select id, ${version} as version from unnest($2::text[]) id),
           one as (${upsert(first.table)}) ${upsert(second.table)}`,
        organization,
        ids
      )
    },
    Rename: ({ from, stamp, to }) => rekey("id", from, to, stamp),
    Move: ({ id, stamp }) => rekey("organization_id", id, organizations[at === 0 ? 1 : 0], stamp),
    Truncate: () => one(`truncate ${table}`)
  })
}
