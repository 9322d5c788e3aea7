/** The statements of changes. */
import { Change, type Stamp } from "./History.ts"
import { ledgers, type Organizations, type Room } from "./Room.ts"

/** A statement with its parameters. */
export interface Statement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

const where = (ids: ReadonlyArray<string> | undefined) =>
  `where organization_id = $1${ids === undefined ? "" : " and id = any($2::text[])"}`

/** Where versions come from: one sequence for all tables. */
export const sequence = "sync_versions"

const version = `'v' || nextval('${sequence}')`

const stampOf = (stamp: Exclude<Stamp, "left">) =>
  stamp === "now()" ? stamp : `clock_timestamp() + interval '${stamp} milliseconds'`

const upsert = (ledger: string) =>
  `insert into ${ledger} (organization_id, id, status) select $1, id, version from versions
   on conflict (organization_id, id) do update set status = excluded.status`

/**
 * The statements of a change, for the organization `$1` of a room. A version is taken while its row is locked, so that higher
 * versions of a record are committed later.
 */
export const statementsOf = (
  { kind, organization: at }: Room,
  organizations: Organizations,
  change: Change
): ReadonlyArray<Statement> => {
  const organization = organizations[at]
  const other = organizations[at === 0 ? 1 : 0]
  const { also = {}, label, table, time } = kind
  const assigned = (stamp: Stamp) =>
    `${label} = ${version}${time === undefined || stamp === "left" ? "" : `, ${time} = ${stampOf(stamp)}`}`
  const params = (ids: ReadonlyArray<string> | undefined) => (ids === undefined ? [organization] : [organization, ids])
  const update = (set: string, ids: ReadonlyArray<string> | undefined): Statement => ({
    text: `update ${table} set ${set} ${where(ids)}`,
    params: params(ids)
  })
  const remove = (ids: ReadonlyArray<string> | undefined): Statement => ({
    text: `delete from ${table} ${where(ids)}`,
    params: params(ids)
  })
  const insert = (ids: ReadonlyArray<string>, stamp: Stamp, onConflict: string): Statement => {
    const timed = time === undefined || stamp === "left" ? undefined : { [time]: stampOf(stamp) }
    const columns = { ...also, ...timed, [label]: version }
    return {
      text: `insert into ${table} (organization_id, id, ${Object.keys(columns).join(", ")})
             select $1, id, ${Object.values(columns).join(", ")} from unnest($2::text[]) id ${onConflict}`,
      params: [organization, ids]
    }
  }
  return Change.$match(change, {
    Insert: ({ ids, stamp, onConflict }) => [
      insert(
        ids,
        stamp,
        {
          fail: "",
          "do nothing": "on conflict do nothing",
          update: `on conflict (organization_id, id) do update set ${assigned(stamp)}`
        }[onConflict]
      )
    ],
    // The file of a COPY is known before the rows are locked; a row with the same id then makes it fail.
    Copy: ({ ids, stamp }) => [
      {
        text: `do $do$
          declare file text;
          begin
            select string_agg(concat_ws(E'\\t', '${organization}', id, ${version}
              ${time === undefined || stamp === "left" ? "" : `, (${stampOf(stamp)})::text`}), E'\\n')
              into file from unnest('{${ids.join(",")}}'::text[]) id;
            execute format(
              'copy ${table} (organization_id, id, ${label}${time === undefined || stamp === "left" ? "" : `, ${time}`}) from program %L',
              'cat <<"END"' || E'\\n' || file || E'\\nEND');
          end $do$`,
        params: []
      }
    ],
    Update: ({ ids, stamp }) => [update(assigned(stamp), ids)],
    Nest: ({ ids, stamp }) => [
      {
        text: `do $do$ begin
          for n in 1..70 loop
            begin
              update ${table} set ${assigned(stamp)}
              where organization_id = '${organization}' and id = ('{${ids.join(",")}}'::text[])[1 + n % ${ids.length}];
            exception when unique_violation then null;
            end;
          end loop;
        end $do$`,
        params: []
      }
    ],
    Touch: ({ ids }) => [update(`${label} = ${label}`, ids)],
    Mark: ({ ids, stamp }) => [update(`is_deleted = not is_deleted, ${assigned(stamp)}`, ids)],
    Delete: ({ ids }) => [remove(ids)],
    Replace: ({ ids, stamp }) => [remove(ids), insert(ids, stamp, "")],
    Pair: ({ ids, isDelete }) => [
      {
        text: isDelete
          ? `with one as (delete from ${ledgers[0].table} ${where(ids)}) delete from ${ledgers[1].table} ${where(ids)}`
          : `with versions as materialized (select id, ${version} as version from unnest($2::text[]) id),
              one as (${upsert(ledgers[0].table)}) ${upsert(ledgers[1].table)}`,
        params: params(ids)
      }
    ],
    Rename: ({ from, to, stamp }) => [
      {
        text: `update ${table} set id = $3, ${assigned(stamp)} where organization_id = $1 and id = $2`,
        params: [organization, from, to]
      }
    ],
    Move: ({ id, stamp }) => [
      {
        text: `update ${table} set organization_id = $3, ${assigned(stamp)} where organization_id = $1 and id = $2`,
        params: [organization, id, other]
      }
    ],
    Truncate: () => [{ text: `truncate ${table}`, params: [] }]
  })
}
