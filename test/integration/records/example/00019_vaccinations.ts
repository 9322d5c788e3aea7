/** The table of vaccinations: the function that renders a record, the columns, and an index for each search. */
import { Effect } from "effect"
import { compileRecord } from "../../../../src/database/migrations/compileRecord.ts"
import { script } from "../../../../src/database/migrations/script.ts"
import { changesIndex, trackChanges } from "../../../../src/database/migrations/trackChanges.ts"

const table = script(String.raw`
create function vaccinations_record(
  id text, pet text, vaccine text, dose numeric, is_booster boolean, created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'       || coalesce(to_json(id)::text, 'null')
    || ',"pet":'        || coalesce(to_json(pet)::text, 'null')
    || ',"vaccine":'    || coalesce(to_json(vaccine)::text, 'null')
    || ',"dose":'       || coalesce(case when dose <> 0 and abs(dose) < 0.000001 then api_tiny(dose) else trim_scale(dose)::text end, 'null')
    || ',"isBooster":'  || coalesce(is_booster::text, 'null')
    || ',"created_at":' || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":' || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table vaccinations (
  organization_id text collate "C" not null,
  id              text collate "C",
  pet             text collate "C",
  vaccine         text collate "C",
  dose            api_decimal,
  is_booster      boolean not null default false,
  created_at      api_instant not null default now(),
  updated_at      api_instant not null default now(),
  record          text not null generated always as (vaccinations_record(
    id, pet, vaccine, dose, is_booster, created_at, updated_at
  )) stored,
  primary key (organization_id, id),
  constraint vaccinations_id_not_empty check (id <> '' and organization_id <> '')
);

create index vaccinations_search         on vaccinations (organization_id, is_booster, updated_at, id, created_at);
create index vaccinations_search_pet     on vaccinations (organization_id, pet, is_booster, updated_at, id) where pet is not null;
create index vaccinations_created        on vaccinations (organization_id, created_at);
create index vaccinations_search_changed_before_created on vaccinations (organization_id, is_booster, updated_at, id, created_at)
  where updated_at < created_at;

grant select on vaccinations to practice_data_api;
grant select, insert, update, delete on vaccinations to practice_data_writer;

${trackChanges({ table: "vaccinations", changedAt: "updated_at" })}
create index vaccinations_changes on vaccinations ${changesIndex};
`)

export default Effect.andThen(table, compileRecord("vaccinations"))
