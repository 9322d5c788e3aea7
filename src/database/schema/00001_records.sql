-- The records: a table for each resource, with a column for each field.
--
-- The organization comes first in every primary key and index, so that a search reads one range of an index, and the
-- tables can be distributed by organization. Identifiers are yours. There are no foreign keys: records may come in any
-- order.
--
-- In function bodies, `home` stands for the schema of the tables: `migrate` puts its name there.

-- Roles belong to the server: another database of it may have made them, or be making them now.
do $roles$ declare name text; begin
  foreach name in array array['practice_data_api', 'practice_data_intake', 'practice_data_worker', 'practice_data_writer'] loop
    begin
      if not exists (select from pg_roles where rolname = name) then execute format('create role %I nologin', name); end if;
    exception when duplicate_object or unique_violation then null;
    end;
  end loop;
end $roles$;

-- The checks of values below decide nearly every value by an expression: each statement would expand a function of SQL again,
-- which took most of the time of a write of one row. These functions of plpgsql decide the other values.

-- True if a number is shown exactly as it is stored, which a double can do for 15 digits.
create function is_exact(value numeric) returns boolean language plpgsql strict immutable parallel safe
set search_path = pg_catalog, pg_temp as $function$ begin
  return abs(value) < 1e21 and abs(value) < 'Infinity' and scale(trim_scale(value)) <= 30
    and length(btrim(replace(abs(value)::text, '.', ''), '0')) <= 15;
end $function$;

-- A text without the white space around it, as JavaScript trims.
create function trimmed(value text) returns text language plpgsql strict immutable parallel safe
set search_path = pg_catalog, pg_temp as $function$ begin return
  btrim(value, E' \t\n\x0b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff');
end $function$;

create function is_time_zone(name text) returns boolean language plpgsql immutable parallel safe
set search_path = pg_catalog, pg_temp as $function$
begin
  perform timestamptz 'epoch' at time zone name;
  return true;
exception when invalid_parameter_value then
  return false;
end $function$;

-- Adds the checks of values that all tables of records have, by the types of their columns. The name of a constraint says
-- which column it is about, and why. Can be called again after a column was added: it does not read the rows, which
-- validate_records does.
create procedure describe_records(name text) language plpgsql as $procedure$ declare given record; begin
  for given in
    select format(check_name, attname) as constraint_name, format(condition, attname) as condition
    from pg_attribute
    join (values
      ('numeric', '%s_at_most_15_digits',
        'case when min_scale(%1$I) <= 4 and abs(%1$I) < 1e11 then true else is_exact(%1$I) end'),
      ('timestamptz', '%s_in_years_1_to_9999', '%1$I >= ''0001-01-01 00:00:00+00'' and %1$I < ''10000-01-01 00:00:00+00'''),
      ('date', '%s_in_years_1_to_9999', '%1$I >= ''0001-01-01'' and %1$I <= ''9999-12-31'''),
      ('text[]', '%s_flat_without_nulls', 'case when coalesce(array_ndims(%1$I), 1) = 1 then array_position(%1$I, null) is null else false end')
    ) checks (type, check_name, condition) on atttypid = type::regtype
    where attrelid = name::regclass and attnum > 0 and not attisdropped
    union all
    values
      -- Visible characters of ASCII at both ends, or a longer look.
      ('organization_id_without_blanks_around',
        'case when ascii(organization_id) between 33 and 126
          and ascii(right(organization_id, 1)) between 33 and 126
        then true else organization_id <> '''' and organization_id = trimmed(organization_id) end'),
      ('id_not_blank', 'case when ascii(id) between 33 and 126 then true else trimmed(id) <> '''' end')
  loop
    if not exists (
      select from pg_constraint where conrelid = name::regclass and conname = given.constraint_name::name
    ) then
      execute format('alter table %I add constraint %I check (%s) not valid', name, given.constraint_name, given.condition);
    end if;
  end loop;
end $procedure$;

create procedure validate_records(name text) language plpgsql as $procedure$ declare given name; begin
  for given in select conname from pg_constraint where conrelid = name::regclass and not convalidated loop
    execute format('alter table %I validate constraint %I', name, given);
  end loop;
end $procedure$;

-- The columns of every table of records.
create table columns_of_records (
  organization_id text collate "C" not null,
  id              text collate "C" not null,
  created_at      timestamptz not null default now(),
  primary key (organization_id, id)
);

-- Each line of a table has columns that belong together.
create table organizations ( -- The owner of clinics and of all their records.
  like columns_of_records including all,
  name text collate "C", updated_at timestamptz not null default now(),
  constraint id_of_the_organization check (id = organization_id)
);

create table clinics (
  like columns_of_records including all,
  clinic_pims_id text collate "C", name text collate "C", time_zone text collate "C", url text collate "C",
  organization text collate "C", processor_account text collate "C",
  constraint time_zone_known check (is_time_zone(time_zone))
);

create table products (
  like columns_of_records including all,
  clinic text collate "C", product_code text collate "C", pims_id text collate "C", product_name text collate "C",
  retail_price numeric, member_price numeric, member_cancellation_price numeric,
  modified_at timestamptz not null default now()
);

create table pets (
  like columns_of_records including all,
  name text collate "C", species text collate "C", breed text collate "C", sex text collate "C", date_of_birth date,
  clinic text collate "C", client_id text collate "C", updated_at timestamptz not null default now()
);

create table subscriptions ( -- Of a pet to a wellness plan.
  like columns_of_records including all,
  pet text collate "C", clinic text collate "C", plan_name text collate "C", status text collate "C",
  start_date timestamptz, end_date timestamptz, cancelled_at timestamptz,
  price numeric, billing_frequency text collate "C", auto_renew boolean not null default false,
  updated_at timestamptz not null default now()
);

create table pet_benefits ( -- What a plan grants a pet.
  like columns_of_records including all,
  pet text collate "C", subscription text collate "C", benefit_name text collate "C", benefit_description text collate "C",
  wellness_plan_name text collate "C", is_addon boolean not null default false,
  revenue_to_recognize_per_unit numeric, retail_value numeric, provided numeric, remaining numeric,
  is_unlimited boolean not null default false, rounding_addition numeric, is_perk boolean not null default false,
  in_kind_discount numeric, parent_petbenefit text collate "C", updated_at timestamptz not null default now(),
  inactivation_date timestamptz, activation_date timestamptz, product_ids text[] not null default '{}',
  removed boolean not null default false
);

create table payment_plans ( -- The schedule of payments of a subscription.
  like columns_of_records including all,
  subscription text collate "C", pet text collate "C", clinic text collate "C", status text collate "C",
  payment_amount numeric, number_of_payments integer, payments_made integer, frequency text collate "C",
  next_payment_date timestamptz, updated_at timestamptz not null default now()
);

create table payment_intents ( -- A scheduled payment of a plan, and its outcome.
  like columns_of_records including all,
  clinic_name text collate "C", clinic_id text collate "C", pet text collate "C", subscription text collate "C",
  payment_amount numeric, scheduled_date timestamptz, captured_date timestamptz,
  paid boolean not null default false, is_refunded boolean not null default false, is_test boolean not null default false,
  updated_at timestamptz not null default now(),
  is_modify_catchup_payment boolean not null default false, payment_modifications text[],
  processor_payment_intent_id text collate "C", attempt_number integer,
  original_amount_received numeric, refunded_amount numeric,
  plan_name text collate "C", species text collate "C", plan_header text collate "C",
  payment_split_to_platform numeric, payment_split_to_processor numeric, payment_split_to_clinic numeric
);

create table cancellation_payment_intents ( -- The settlement of a cancelled plan.
  like columns_of_records including all,
  clinic_name text collate "C", clinic_id text collate "C", date timestamptz,
  discounted boolean not null default false, discounted_amount numeric, new_price numeric, percent_discount numeric,
  pet text collate "C", subscription text collate "C", payments numeric, payment_amount numeric,
  payment_or_refund text collate "C", payment_intent_or_refund_id text collate "C",
  total_benefits_consumed_at_retail_price numeric, total_benefits_consumed_at_discounted_price numeric,
  reason text collate "C", early_cancellation_fee numeric, refund_ids text[] not null default '{}',
  is_succeeded boolean not null default false, is_test boolean not null default false,
  updated_at timestamptz not null default now(),
  plan_name text collate "C", species text collate "C", plan_header text collate "C"
);

create table invoices ( -- Of a clinic to a client.
  like columns_of_records including all,
  home_clinic text collate "C", servicing_clinic text collate "C", client_id text collate "C", pet text collate "C",
  invoice_pims_id text collate "C", invoice_date timestamptz, status text collate "C",
  subtotal numeric, discount numeric, tax numeric, total numeric,
  is_deleted boolean not null default false, deleted_at timestamptz, updated_at timestamptz not null default now()
);

create table invoice_lines (
  like columns_of_records including all,
  invoice text collate "C", clinic text collate "C", pet text collate "C", invoice_line_pims_id text collate "C",
  product_code text collate "C", product_name text collate "C",
  quantity numeric, unit_price numeric, discount numeric, total numeric,
  is_deleted boolean not null default false, deleted_at timestamptz, updated_at timestamptz not null default now()
);

create table consumption_logs ( -- The consumption of a benefit by an invoice line.
  like columns_of_records including all,
  home_clinic text collate "C", servicing_clinic text collate "C",
  invoice_pims_id text collate "C", invoice_date timestamptz, invoice_line text collate "C",
  invoice_line_aje_delta_discounted numeric, invoice_line_aje_delta_gross numeric,
  invoice_line_pims_id text collate "C", pet text collate "C", pet_benefit text collate "C",
  product_code text collate "C", product_name text collate "C",
  qty_available_on_plan numeric, qty_consumed numeric, qty_in_plan numeric, qty_out_of_plan numeric, qty_remaining numeric,
  revenue_in_plan_total numeric, revenue_out_of_plan_total numeric,
  revenue_to_recognize_total numeric, revenue_to_recognize_per_unit numeric,
  is_unlimited_benefit boolean not null default false, subscription text collate "C",
  updated_at timestamptz not null default now(), is_deleted boolean not null default false
);

create table charges ( -- The amount owed for an invoice, and what was paid.
  like columns_of_records including all,
  home_clinic text collate "C", servicing_clinic text collate "C", invoice text collate "C", invoice_pims_id numeric,
  payment_method_id text collate "C", status text collate "C", original_amount numeric, current_amount numeric,
  net_paid numeric, paid_amount numeric, overpaid_amount numeric, outstanding_balance numeric, refunded_amount numeric,
  updated_at timestamptz not null default now(), pet text collate "C"
);

create table charge_payments ( -- A payment towards a charge.
  like columns_of_records including all,
  currency text collate "C", status text collate "C", amount numeric, charge text collate "C",
  updated_at timestamptz not null default now()
);

create table charge_adjustments (
  like columns_of_records including all,
  charge text collate "C", amount numeric, reason text collate "C", updated_at timestamptz not null default now()
);

create table charge_refunds (
  like columns_of_records including all,
  refund_date timestamptz, amount numeric, charge text collate "C", updated_at timestamptz not null default now()
);

drop table columns_of_records;

-- The indexes of searches: by each filter; by the time of the last change, and once more for rows where that precedes the
-- creation (times of a writer); and by the creation. Rows that a search shows only on request are apart, by a column before
-- the time, and then the index of a filter holds only rows with a value.
do $indexes$ declare name text; place text; filters text[]; filter text; begin
  for name, place, filters in values
    ('products', 'modified_at', array['clinic', 'pims_id', 'product_code', 'product_name']),
    ('pets', 'updated_at', array['client_id', 'clinic', 'species']),
    ('subscriptions', 'updated_at', array['clinic', 'pet', 'status']),
    ('pet_benefits', 'removed, updated_at', array['pet', 'subscription']),
    ('payment_plans', 'updated_at', array['clinic', 'pet', 'status', 'subscription']),
    ('payment_intents', 'updated_at', array['clinic_id', 'pet', 'subscription']),
    ('cancellation_payment_intents', 'updated_at', array['clinic_id', 'pet', 'subscription']),
    ('invoices', 'is_deleted, updated_at', array['client_id', 'home_clinic', 'invoice_pims_id', 'pet', 'status']),
    ('invoice_lines', 'is_deleted, updated_at', array['clinic', 'invoice', 'pet', 'product_code']),
    ('consumption_logs', 'is_deleted, updated_at', array['home_clinic', 'invoice_line', 'pet', 'product_code', 'subscription']),
    ('charges', 'updated_at', array['home_clinic', 'invoice', 'invoice_pims_id', 'pet', 'status']),
    ('charge_payments', 'updated_at', array['charge', 'status']),
    ('charge_adjustments', 'updated_at', array['charge']),
    ('charge_refunds', 'updated_at', array['charge'])
  loop
    foreach filter in array filters loop
      execute format(
        case when place like '%, %'
          then 'create index %1$s_search_%2$s on %1$s (organization_id, %2$s, %3$s, id) where %2$s is not null'
          else 'create index %1$s_%2$s on %1$s (organization_id, %2$s, %3$s, id)' end,
        name, filter, place);
    end loop;
    execute format('create index %I on %I (organization_id, %s, id, created_at)', name || '_search', name, place);
    execute format('create index %I on %I (organization_id, %s, id, created_at) where %s < created_at',
      name || '_search_changed_before_created', name, place, split_part(place, ', ', -1));
    execute format('create index %I on %I (organization_id, created_at)', name || '_created', name);
  end loop;
end $indexes$;
create index clinics_order on clinics (organization_id, created_at, id);
create index clinics_clinic_pims_id on clinics (organization_id, clinic_pims_id, created_at, id);
create index clinics_name on clinics (organization_id, name, created_at, id);
create index invoices_search_visiting on invoices (organization_id, servicing_clinic, is_deleted, updated_at, id)
  where home_clinic is distinct from servicing_clinic;
create index charges_visiting on charges (organization_id, servicing_clinic, updated_at, id)
  where home_clinic is distinct from servicing_clinic;
