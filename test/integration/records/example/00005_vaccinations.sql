-- Vaccinations of pets: the table, and an index for each search.

create table vaccinations (
  organization_id text collate "C" not null,
  id              text collate "C" not null,
  pet             text collate "C",
  vaccine         text collate "C",
  dose            numeric,
  is_booster      boolean not null default false,
  created_at      timestamptz not null default now(),
  updated_at      timestamptz not null default now(),
  primary key (organization_id, id)
);

create index vaccinations_search                        on vaccinations (organization_id, is_booster, updated_at, id, created_at);
create index vaccinations_search_changed_before_created on vaccinations (organization_id, is_booster, updated_at, id, created_at) where updated_at < created_at;
create index vaccinations_created                       on vaccinations (organization_id, created_at);
create index vaccinations_search_pet                    on vaccinations (organization_id, pet, is_booster, updated_at, id) where pet is not null;

comment on table vaccinations is 'A vaccination of a pet';

-- The feed: the time of the change, and the fields in their order.
call publish('vaccinations', 'updated_at', 'id pet vaccine dose isBooster created_at updated_at');
