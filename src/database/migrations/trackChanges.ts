/** Change tracking of a table of records. */

export interface Tracked {
  readonly table: string
  /** The column with the time of the last change. An UPDATE that does not set it sets it to now. */
  readonly changedAt?: "updated_at" | "modified_at"
}

/** The columns of the index of a feed: `create index TABLE_changes on TABLE (...)`. */
export const changesIndex = "(organization_id, change_position, id)"

/**
 * The statements that add the column `change_position`, its triggers, and the feed of a table. The triggers fire always,
 * so also for rows of logical replication.
 */
export const trackChanges = ({ changedAt, table }: Tracked) => `
alter table ${table} add column change_position bigint not null default 0;
alter table ${table} alter column change_position set default change_position();

-- An insert has its position by default. A trigger for every row would cost COPY more than the position and its index.
create trigger zz_inserted before insert on ${table} for each row
  when (new.change_position is distinct from change_position() or current_setting('synchronous_commit') = 'off')
  execute function record_changed();
create trigger zz_changed before update on ${table} for each row execute function record_changed(${changedAt ?? ""});
create trigger moved after update on ${table} for each row
  when (old.id is distinct from new.id or old.organization_id is distinct from new.organization_id)
  execute function record_removed();
create trigger removed after delete on ${table} for each row execute function record_removed();
create trigger truncated after truncate on ${table} for each statement execute function records_truncated();
alter table ${table} enable always trigger zz_inserted;
alter table ${table} enable always trigger zz_changed;
alter table ${table} enable always trigger moved;
alter table ${table} enable always trigger removed;
alter table ${table} enable always trigger truncated;

insert into change_feeds (table_name, place) values ('${table}', change_place('${table}'));
`
