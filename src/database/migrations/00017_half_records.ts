/**
 * A server that ends in the middle of a record of the write-ahead log loses nothing by it: what no commit waits for is
 * flushed by whole pages, so readers may have seen the log up to the end of a page, and no change in the half record. A mark
 * proves that after a crash, and after a failover.
 */
import { script } from "./script.ts"

export default script(String.raw`
do $schema$ begin execute format($create$
-- Writes down how far all transactions have ended, for a later run of the server to know how far it agrees with this one.
create or replace function change_mark() returns void language plpgsql security definer
set search_path = pg_catalog, pg_temp as $function$
declare
  own constant integer := %1$I.change_timeline();
  started constant timestamptz := pg_postmaster_start_time();
  newest %1$I.change_marks;
  lowest bigint;
  ceiling bigint;
  fork pg_lsn;
  ended pg_lsn;
begin
  if pg_is_in_recovery() then return; end if;
  -- Nobody may have a cursor of a mark that a crash can lose.
  if current_setting('synchronous_commit') = 'off' then
    perform set_config('synchronous_commit', 'on', true);
  end if;
  select * into newest from %1$I.change_marks order by timeline desc limit 1;
  select %1$I.change_base() + pg_snapshot_xmax(pg_current_snapshot())::text::bigint into ceiling;
  if (newest.timeline, newest.started_at) is distinct from (own, started) then
    lock table %1$I.change_marks in share row exclusive mode;
    -- Timelines that this server has not come to are of another cluster.
    delete from %1$I.change_marks where timeline > own;
    select * into newest from %1$I.change_marks order by timeline desc limit 1;
  -- Written once a minute where nothing happens, so that its age tells whether there was a run without a mark.
  elsif (newest.marked_at between clock_timestamp() - case newest.proven when ceiling then interval '1 min' else interval '0.5 s' end
    and clock_timestamp()) then return;
  end if;

  if (newest.timeline, newest.started_at) is distinct from (own, started) then
    if newest.timeline = own then
      -- Where the run before ended and this one began. What was written meanwhile by a run without a mark may be another
      -- history, so it is known only of a run whose mark is not much older than its end.
      ended := case
        when newest.started_at is null and newest.marked_at >= started then pg_current_wal_insert_lsn()
        when pg_last_wal_replay_lsn() is not null then
          case when newest.marked_at > started - interval '5 min' then greatest(pg_last_wal_replay_lsn(), (
            -- The page on which this run began to write: on those before it, half a record may follow the last whole one.
            select '0/0'::pg_lsn + div(checkpoint_lsn - '0/0', page) * page
            from pg_control_checkpoint(), cast(current_setting('wal_block_size') as numeric) page
            -- That at the end of the recovery. Another one writes more before its record.
            where checkpoint_lsn = redo_lsn and current_setting('wal_level') <> 'minimal'
          )) end
        -- That of a shutdown. Any other begins before it is written.
        else (
          select checkpoint_lsn from pg_control_checkpoint()
          where checkpoint_lsn = redo_lsn and checkpoint_time < started
            and newest.marked_at > checkpoint_time - interval '5 min'
        )
      end;
      fork := newest.forked_at;
    -- The end of the recovery, if that was of a standby: after a crash it would be another's.
    elsif pg_last_wal_receive_lsn() is not null then
      fork := pg_last_wal_replay_lsn();
      -- A promotion replays each whole record that was received, unless the recovery had a target before.
      ended := case
        when exists (
          select from pg_settings where name ~ '^recovery_target(_lsn|_name|_time|_xid)?$' and setting <> ''
        ) then fork
        else greatest(fork, pg_last_wal_receive_lsn())
      end;
    end if;
    update %1$I.change_marks set
      durable_until = greatest(durable_until, ended),
      timeline = case timeline when own then (select least(min(timeline), 0) - 1 from %1$I.change_marks) else timeline end
    where timeline = newest.timeline and timeline > 0;
    insert into %1$I.change_marks (timeline, started_at, forked_at, proven) values (own, started, fork, 0);
    -- As many as a server that starts again and again may have in weeks.
    delete from %1$I.change_marks
    where timeline < 0 and timeline >= (select min(timeline) + 1000 from %1$I.change_marks);
  end if;

  select %1$I.change_base() + pg_snapshot_xmin(pg_current_snapshot())::text::bigint into lowest;
  ceiling := %1$I.change_base() + pg_current_xact_id()::text::bigint;
  update %1$I.change_marks set
    proven = case lowest when ceiling then ceiling + 1 else lowest end,
    durable_until = pg_current_wal_insert_lsn(),
    marked_at = clock_timestamp()
  where timeline = own;
end $function$
$create$, current_schema()); end $schema$;
`)
