/**
 * What `distribute` calls of Citus, made in the database of a test: it writes down what is distributed, and moves no row.
 * Triggers are refused as Citus refuses them without its setting.
 */
import type { Database } from "../../../src/database/Database.ts"
import { script } from "../../../src/database/migrations/script.ts"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"

export const install = (sql: Database) =>
  script(`
create table public.pg_dist_partition (
  logicalrelid regclass primary key, partmethod "char" not null, partkey text, colocationid integer not null
);

create function public.column_to_column_name(name regclass, key text) returns text language sql return key;

create table public.commands (place serial, command text);

create function public.create_distributed_function(name regprocedure) returns void language sql
begin atomic
  insert into public.commands (command) values ('function ' || name::text);
end;

create function public.create_reference_table(name regclass) returns void language sql
begin atomic
  insert into public.pg_dist_partition values (name, 'n', null, 1);
end;

create function public.create_distributed_table(name regclass, key text, colocate_with text) returns void
language plpgsql as $citus$
begin
  if current_setting('citus.enable_unsafe_triggers', true) is distinct from 'on'
    and exists (select from pg_trigger where tgrelid = name and not tgisinternal) then
    raise exception 'cannot distribute relation "%" because it has triggers', name;
  end if;
  if colocate_with <> 'none' and not exists (select from public.pg_dist_partition where logicalrelid = colocate_with::regclass) then
    raise exception 'relation % is not distributed', colocate_with;
  end if;
  insert into public.pg_dist_partition values (name, 'h', key, 2);
end $citus$;

create function public.run_command_on_workers(command text)
returns table (nodename text, nodeport integer, success boolean, result text) language sql
begin atomic
  insert into public.commands (command) values (command);
  select 'worker', 5432, true, 'ALTER DATABASE';
end;
`).pipe(Effect.provideService(SqlClient.SqlClient, sql))
