/**
 * The tables of the records, the API keys, and the role of the data API.
 *
 * Each record table keeps the JSON of its rows in a generated column: the database renders a row once, when it is
 * written, whoever writes it, and a page is put together from rendered rows. The organization comes first in every
 * primary key and index, so that the tables can be distributed by organization.
 *
 * The rendering is written out for every field. A function for each kind of value would cost a writer 1.8 times as much:
 * Postgres does not inline an immutable function that calls to_json or to_char.
 */
import { script } from "./script.ts"

export default script(String.raw`
-- Roles belong to the server: another database of it may have made them, or be making them now.
do $$ begin
  if not exists (select from pg_roles where rolname = 'practice_data_api') then create role practice_data_api nologin; end if;
exception when duplicate_object or unique_violation then null;
end $$;

do $$ begin
  if not exists (select from pg_roles where rolname = 'practice_data_intake') then create role practice_data_intake nologin; end if;
exception when duplicate_object or unique_violation then null;
end $$;

do $$ begin
  if not exists (select from pg_roles where rolname = 'practice_data_worker') then create role practice_data_worker nologin; end if;
exception when duplicate_object or unique_violation then null;
end $$;

-- A number is shown exactly as it is stored, which a double can do for 15 digits.
create domain api_decimal as numeric constraint api_decimal_fits check (
  abs(value) < 1e21 and abs(value) < 'Infinity' and scale(trim_scale(value)) <= 30
  and length(btrim(replace(abs(value)::text, '.', ''), '0')) <= 15
);
create domain api_instant as timestamptz constraint api_instant_fits check (
  value >= '0001-01-01 00:00:00+00' and value < '10000-01-01 00:00:00+00'
);
create domain api_date as date constraint api_date_fits check (
  value >= '0001-01-01' and value <= '9999-12-31'
);
create domain api_texts as text[] constraint api_texts_fits check (
  case when coalesce(array_ndims(value), 1) = 1 then array_position(value, null) is null else false end
);

-- A number below a millionth, as JSON writes it: 1.5e-7.
create function api_tiny(value numeric) returns text language sql immutable strict parallel safe
  return regexp_replace(btrim(to_char(value, '9.99999999999999EEEE')), '\.?0*e-0*', 'e-');


create function organizations_record(
  id text, name text, created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'       || coalesce(to_json(id)::text, 'null')
    || ',"name":'       || coalesce(to_json(name)::text, 'null')
    || ',"created_at":' || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":' || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table organizations (
  organization_id text collate "C" not null,
  id              text collate "C",
  name            text collate "C",
  created_at      api_instant not null default now(),
  updated_at      api_instant not null default now(),
  record          text not null generated always as (organizations_record(
    id, name, created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index organizations_order                  on organizations (organization_id, updated_at, id);
create index organizations_created_at             on organizations (organization_id, created_at, updated_at, id);
create index organizations_changed_before_created on organizations (organization_id, updated_at, id) where updated_at < created_at;

grant select on organizations to practice_data_api;
alter table organizations add constraint organizations_own_id check (id = organization_id);


create function clinics_record(
  id text, clinic_pims_id text, name text, time_zone text, url text, organization text, created_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'           || coalesce(to_json(id)::text, 'null')
    || ',"clinic_pims_id":' || coalesce(to_json(clinic_pims_id)::text, 'null')
    || ',"name":'           || coalesce(to_json(name)::text, 'null')
    || ',"time_zone":'      || coalesce(to_json(time_zone)::text, 'null')
    || ',"url":'            || coalesce(to_json(url)::text, 'null')
    || ',"organization":'   || coalesce(to_json(organization)::text, 'null')
    || '}';

create table clinics (
  organization_id text collate "C" not null,
  id              text collate "C",
  clinic_pims_id  text collate "C",
  name            text collate "C",
  time_zone       text collate "C",
  url             text collate "C",
  organization    text collate "C",
  created_at      api_instant not null default now(),
  record          text not null generated always as (clinics_record(
    id, clinic_pims_id, name, time_zone, url, organization, created_at
  )) stored,
  primary key (organization_id, id)
);

create index clinics_order          on clinics (organization_id, created_at, id);
create index clinics_clinic_pims_id on clinics (organization_id, clinic_pims_id, created_at, id);
create index clinics_name           on clinics (organization_id, name, created_at, id);

grant select on clinics to practice_data_api;


create function pets_record(
  id text, name text, species text, breed text, sex text, date_of_birth date, clinic text, client_id text,
  created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'          || coalesce(to_json(id)::text, 'null')
    || ',"name":'          || coalesce(to_json(name)::text, 'null')
    || ',"species":'       || coalesce(to_json(species)::text, 'null')
    || ',"breed":'         || coalesce(to_json(breed)::text, 'null')
    || ',"sex":'           || coalesce(to_json(sex)::text, 'null')
    || ',"date_of_birth":' || coalesce('"' || to_char(date_of_birth::timestamp, 'YYYY-MM-DD') || '"', 'null')
    || ',"clinic":'        || coalesce(to_json(clinic)::text, 'null')
    || ',"client_id":'     || coalesce(to_json(client_id)::text, 'null')
    || ',"created_at":'    || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'    || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table pets (
  organization_id text collate "C" not null,
  id              text collate "C",
  name            text collate "C",
  species         text collate "C",
  breed           text collate "C",
  sex             text collate "C",
  date_of_birth   api_date,
  clinic          text collate "C",
  client_id       text collate "C",
  created_at      api_instant not null default now(),
  updated_at      api_instant not null default now(),
  record          text not null generated always as (pets_record(
    id, name, species, breed, sex, date_of_birth, clinic, client_id, created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index pets_order                  on pets (organization_id, updated_at, id);
create index pets_clinic                 on pets (organization_id, clinic, updated_at, id);
create index pets_client_id              on pets (organization_id, client_id, updated_at, id);
create index pets_species                on pets (organization_id, species, updated_at, id);
create index pets_created_at             on pets (organization_id, created_at, updated_at, id);
create index pets_changed_before_created on pets (organization_id, updated_at, id) where updated_at < created_at;

grant select on pets to practice_data_api;


create function subscriptions_record(
  id text, pet text, clinic text, plan_name text, status text, start_date timestamptz, end_date timestamptz,
  cancelled_at timestamptz, price numeric, billing_frequency text, auto_renew boolean, created_at timestamptz,
  updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'              || coalesce(to_json(id)::text, 'null')
    || ',"pet":'               || coalesce(to_json(pet)::text, 'null')
    || ',"clinic":'            || coalesce(to_json(clinic)::text, 'null')
    || ',"plan_name":'         || coalesce(to_json(plan_name)::text, 'null')
    || ',"status":'            || coalesce(to_json(status)::text, 'null')
    || ',"start_date":'        || coalesce('"' || to_char(start_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"end_date":'          || coalesce('"' || to_char(end_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"cancelled_at":'      || coalesce('"' || to_char(cancelled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"price":'             || coalesce(case when price <> 0 and abs(price) < 0.000001 then api_tiny(price) else trim_scale(price)::text end, 'null')
    || ',"billing_frequency":' || coalesce(to_json(billing_frequency)::text, 'null')
    || ',"auto_renew":'        || coalesce(auto_renew::text, 'null')
    || ',"created_at":'        || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'        || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table subscriptions (
  organization_id   text collate "C" not null,
  id                text collate "C",
  pet               text collate "C",
  clinic            text collate "C",
  plan_name         text collate "C",
  status            text collate "C",
  start_date        api_instant,
  end_date          api_instant,
  cancelled_at      api_instant,
  price             api_decimal,
  billing_frequency text collate "C",
  auto_renew        boolean not null default false,
  created_at        api_instant not null default now(),
  updated_at        api_instant not null default now(),
  record            text not null generated always as (subscriptions_record(
    id, pet, clinic, plan_name, status, start_date, end_date, cancelled_at, price, billing_frequency, auto_renew,
    created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index subscriptions_order                  on subscriptions (organization_id, updated_at, id);
create index subscriptions_pet                    on subscriptions (organization_id, pet, updated_at, id);
create index subscriptions_clinic                 on subscriptions (organization_id, clinic, updated_at, id);
create index subscriptions_status                 on subscriptions (organization_id, status, updated_at, id);
create index subscriptions_created_at             on subscriptions (organization_id, created_at, updated_at, id);
create index subscriptions_changed_before_created on subscriptions (organization_id, updated_at, id) where updated_at < created_at;

grant select on subscriptions to practice_data_api;


create function payment_plans_record(
  id text, subscription text, pet text, clinic text, status text, payment_amount numeric,
  number_of_payments integer, payments_made integer, frequency text, next_payment_date timestamptz,
  created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'               || coalesce(to_json(id)::text, 'null')
    || ',"subscription":'       || coalesce(to_json(subscription)::text, 'null')
    || ',"pet":'                || coalesce(to_json(pet)::text, 'null')
    || ',"clinic":'             || coalesce(to_json(clinic)::text, 'null')
    || ',"status":'             || coalesce(to_json(status)::text, 'null')
    || ',"payment_amount":'     || coalesce(case when payment_amount <> 0 and abs(payment_amount) < 0.000001
                                            then api_tiny(payment_amount) else trim_scale(payment_amount)::text end, 'null')
    || ',"number_of_payments":' || coalesce(number_of_payments::text, 'null')
    || ',"payments_made":'      || coalesce(payments_made::text, 'null')
    || ',"frequency":'          || coalesce(to_json(frequency)::text, 'null')
    || ',"next_payment_date":'  || coalesce('"' || to_char(next_payment_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"created_at":'         || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'         || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table payment_plans (
  organization_id    text collate "C" not null,
  id                 text collate "C",
  subscription       text collate "C",
  pet                text collate "C",
  clinic             text collate "C",
  status             text collate "C",
  payment_amount     api_decimal,
  number_of_payments integer,
  payments_made      integer,
  frequency          text collate "C",
  next_payment_date  api_instant,
  created_at         api_instant not null default now(),
  updated_at         api_instant not null default now(),
  record             text not null generated always as (payment_plans_record(
    id, subscription, pet, clinic, status, payment_amount, number_of_payments, payments_made, frequency,
    next_payment_date, created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index payment_plans_order                  on payment_plans (organization_id, updated_at, id);
create index payment_plans_subscription           on payment_plans (organization_id, subscription, updated_at, id);
create index payment_plans_pet                    on payment_plans (organization_id, pet, updated_at, id);
create index payment_plans_clinic                 on payment_plans (organization_id, clinic, updated_at, id);
create index payment_plans_status                 on payment_plans (organization_id, status, updated_at, id);
create index payment_plans_created_at             on payment_plans (organization_id, created_at, updated_at, id);
create index payment_plans_changed_before_created on payment_plans (organization_id, updated_at, id) where updated_at < created_at;

grant select on payment_plans to practice_data_api;


create function payment_intents_record(
  id text, clinic_name text, clinic_id text, pet text, subscription text, payment_amount numeric,
  scheduled_date timestamptz, captured_date timestamptz, paid boolean, is_refunded boolean, is_test boolean,
  created_at timestamptz, updated_at timestamptz, is_modify_catchup_payment boolean, payment_modifications text[],
  processor_payment_intent_id text, attempt_number integer, original_amount_received numeric,
  refunded_amount numeric, plan_name text, species text, plan_header text, payment_split_to_platform numeric,
  payment_split_to_processor numeric, payment_split_to_clinic numeric
) returns text language sql immutable parallel safe
  return '{"id":'                        || coalesce(to_json(id)::text, 'null')
    || ',"clinic_name":'                 || coalesce(to_json(clinic_name)::text, 'null')
    || ',"clinic_id":'                   || coalesce(to_json(clinic_id)::text, 'null')
    || ',"pet":'                         || coalesce(to_json(pet)::text, 'null')
    || ',"subscription":'                || coalesce(to_json(subscription)::text, 'null')
    || ',"wellnes_plan_name":'           || coalesce(to_json(nullif(concat_ws(' ',
         nullif(btrim(plan_name, E' \t\n\x0b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'), ''),
         nullif(btrim(species, E' \t\n\x0b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'), ''),
         nullif(btrim(plan_header, E' \t\n\x0b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'), '')
       ), ''))::text, 'null')
    || ',"payment_amount":'              || coalesce(case when payment_amount <> 0 and abs(payment_amount) < 0.000001
                                                     then api_tiny(payment_amount) else trim_scale(payment_amount)::text end, 'null')
    || ',"payment_split":' || '{"to_Platform":'
         || coalesce(case when payment_split_to_platform <> 0 and abs(payment_split_to_platform) < 0.000001
                     then api_tiny(payment_split_to_platform) else trim_scale(payment_split_to_platform)::text end, 'null')
         || ',"to_Processor":'
         || coalesce(case when payment_split_to_processor <> 0 and abs(payment_split_to_processor) < 0.000001
                     then api_tiny(payment_split_to_processor) else trim_scale(payment_split_to_processor)::text end, 'null')
         || ',"to_Clinic":'
         || coalesce(case when payment_split_to_clinic <> 0 and abs(payment_split_to_clinic) < 0.000001
                     then api_tiny(payment_split_to_clinic) else trim_scale(payment_split_to_clinic)::text end, 'null')
         || '}'
    || ',"scheduled_date":'              || coalesce('"' || to_char(scheduled_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"captured_date":'               || coalesce('"' || to_char(captured_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"paid":'                        || coalesce(paid::text, 'null')
    || ',"isRefunded":'                  || coalesce(is_refunded::text, 'null')
    || ',"IsTest":'                      || coalesce(is_test::text, 'null')
    || ',"created_at":'                  || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'                  || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"isModifyCatchupPayment":'      || coalesce(is_modify_catchup_payment::text, 'null')
    || ',"payment_modifications":'       || coalesce(to_json(nullif(payment_modifications, '{}'))::text, 'null')
    || ',"processor_payment_intent_id":' || coalesce(to_json(processor_payment_intent_id)::text, 'null')
    || ',"attempt_number":'              || coalesce(attempt_number::text, 'null')
    || ',"original_amount_received":'    || coalesce(case when original_amount_received <> 0 and abs(original_amount_received) < 0.000001
                                                     then api_tiny(original_amount_received) else trim_scale(original_amount_received)::text end, 'null')
    || ',"refunded_amount":'             || coalesce(case when refunded_amount <> 0 and abs(refunded_amount) < 0.000001
                                                     then api_tiny(refunded_amount) else trim_scale(refunded_amount)::text end, 'null')
    || '}';

create table payment_intents (
  organization_id             text collate "C" not null,
  id                          text collate "C",
  clinic_name                 text collate "C",
  clinic_id                   text collate "C",
  pet                         text collate "C",
  subscription                text collate "C",
  payment_amount              api_decimal,
  scheduled_date              api_instant,
  captured_date               api_instant,
  paid                        boolean not null default false,
  is_refunded                 boolean not null default false,
  is_test                     boolean not null default false,
  created_at                  api_instant not null default now(),
  updated_at                  api_instant not null default now(),
  is_modify_catchup_payment   boolean not null default false,
  payment_modifications       api_texts,
  processor_payment_intent_id text collate "C",
  attempt_number              integer,
  original_amount_received    api_decimal,
  refunded_amount             api_decimal,
  plan_name                   text collate "C",
  species                     text collate "C",
  plan_header                 text collate "C",
  payment_split_to_platform   api_decimal,
  payment_split_to_processor  api_decimal,
  payment_split_to_clinic     api_decimal,
  record                      text not null generated always as (payment_intents_record(
    id, clinic_name, clinic_id, pet, subscription, payment_amount, scheduled_date, captured_date, paid, is_refunded,
    is_test, created_at, updated_at, is_modify_catchup_payment, payment_modifications, processor_payment_intent_id,
    attempt_number, original_amount_received, refunded_amount, plan_name, species, plan_header,
    payment_split_to_platform, payment_split_to_processor, payment_split_to_clinic
  )) stored,
  primary key (organization_id, id)
);

create index payment_intents_order                  on payment_intents (organization_id, updated_at, id);
create index payment_intents_subscription           on payment_intents (organization_id, subscription, updated_at, id);
create index payment_intents_pet                    on payment_intents (organization_id, pet, updated_at, id);
create index payment_intents_clinic_id              on payment_intents (organization_id, clinic_id, updated_at, id);
create index payment_intents_created_at             on payment_intents (organization_id, created_at, updated_at, id);
create index payment_intents_changed_before_created on payment_intents (organization_id, updated_at, id) where updated_at < created_at;

grant select on payment_intents to practice_data_api;


create function cancellation_payment_intents_record(
  id text, clinic_name text, clinic_id text, date timestamptz, discounted boolean, discounted_amount numeric,
  new_price numeric, percent_discount numeric, pet text, subscription text, payments numeric,
  payment_amount numeric, payment_or_refund text, payment_intent_or_refund_id text,
  total_benefits_consumed_at_retail_price numeric, total_benefits_consumed_at_discounted_price numeric, reason text,
  early_cancellation_fee numeric, refund_ids text[], is_succeeded boolean, is_test boolean, created_at timestamptz,
  updated_at timestamptz, plan_name text, species text, plan_header text
) returns text language sql immutable parallel safe
  return '{"id":'                         || coalesce(to_json(id)::text, 'null')
    || ',"clinic_name":'                  || coalesce(to_json(clinic_name)::text, 'null')
    || ',"clinic_id":'                    || coalesce(to_json(clinic_id)::text, 'null')
    || ',"date":'                         || coalesce('"' || to_char(date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"discounted":'                   || coalesce(discounted::text, 'null')
    || ',"discounted_amount":'            || coalesce(case when discounted_amount <> 0 and abs(discounted_amount) < 0.000001
                                                      then api_tiny(discounted_amount) else trim_scale(discounted_amount)::text end, 'null')
    || ',"new_price":'                    || coalesce(case when new_price <> 0 and abs(new_price) < 0.000001
                                                      then api_tiny(new_price) else trim_scale(new_price)::text end, 'null')
    || ',"percent_discount":'             || coalesce(case when percent_discount <> 0 and abs(percent_discount) < 0.000001
                                                      then api_tiny(percent_discount) else trim_scale(percent_discount)::text end, 'null')
    || ',"pet":'                          || coalesce(to_json(pet)::text, 'null')
    || ',"subscription":'                 || coalesce(to_json(subscription)::text, 'null')
    || ',"wellnes_plan_name":'            || coalesce(to_json(nullif(concat_ws(' ',
         nullif(btrim(plan_name, E' \t\n\x0b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'), ''),
         nullif(btrim(species, E' \t\n\x0b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'), ''),
         nullif(btrim(plan_header, E' \t\n\x0b\f\r\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000\ufeff'), '')
       ), ''))::text, 'null')
    || ',"payments":'                     || coalesce(case when payments <> 0 and abs(payments) < 0.000001
                                                      then api_tiny(payments) else trim_scale(payments)::text end, 'null')
    || ',"payment_amount":'               || coalesce(case when payment_amount <> 0 and abs(payment_amount) < 0.000001
                                                      then api_tiny(payment_amount) else trim_scale(payment_amount)::text end, 'null')
    || ',"payment_or_refund":'            || coalesce(to_json(payment_or_refund)::text, 'null')
    || ',"paymentIntent_or_refund_id":'   || coalesce(to_json(payment_intent_or_refund_id)::text, 'null')
    || ',"total_benefits_consumed_at_retail_price":' || coalesce(case when total_benefits_consumed_at_retail_price <> 0 and abs(total_benefits_consumed_at_retail_price) < 0.000001
                                                                 then api_tiny(total_benefits_consumed_at_retail_price) else trim_scale(total_benefits_consumed_at_retail_price)::text end, 'null')
    || ',"total_benefits_consumed_at_discounted_price":' || coalesce(case when total_benefits_consumed_at_discounted_price <> 0 and abs(total_benefits_consumed_at_discounted_price) < 0.000001
                                                                     then api_tiny(total_benefits_consumed_at_discounted_price) else trim_scale(total_benefits_consumed_at_discounted_price)::text end, 'null')
    || ',"reason":'                       || coalesce(to_json(reason)::text, 'null')
    || ',"early_cancellation_fee":'       || coalesce(case when early_cancellation_fee <> 0 and abs(early_cancellation_fee) < 0.000001
                                                      then api_tiny(early_cancellation_fee) else trim_scale(early_cancellation_fee)::text end, 'null')
    || ',"refund_ids":'                   || coalesce(to_json(refund_ids)::text, 'null')
    || ',"isSucceeded":'                  || coalesce(is_succeeded::text, 'null')
    || ',"IsTest":'                       || coalesce(is_test::text, 'null')
    || ',"created_at":'                   || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'                   || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table cancellation_payment_intents (
  organization_id                             text collate "C" not null,
  id                                          text collate "C",
  clinic_name                                 text collate "C",
  clinic_id                                   text collate "C",
  date                                        api_instant,
  discounted                                  boolean not null default false,
  discounted_amount                           api_decimal,
  new_price                                   api_decimal,
  percent_discount                            api_decimal,
  pet                                         text collate "C",
  subscription                                text collate "C",
  payments                                    api_decimal,
  payment_amount                              api_decimal,
  payment_or_refund                           text collate "C",
  payment_intent_or_refund_id                 text collate "C",
  total_benefits_consumed_at_retail_price     api_decimal,
  total_benefits_consumed_at_discounted_price api_decimal,
  reason                                      text collate "C",
  early_cancellation_fee                      api_decimal,
  refund_ids                                  api_texts not null default '{}',
  is_succeeded                                boolean not null default false,
  is_test                                     boolean not null default false,
  created_at                                  api_instant not null default now(),
  updated_at                                  api_instant not null default now(),
  plan_name                                   text collate "C",
  species                                     text collate "C",
  plan_header                                 text collate "C",
  record                                      text not null generated always as (cancellation_payment_intents_record(
    id, clinic_name, clinic_id, date, discounted, discounted_amount, new_price, percent_discount, pet, subscription,
    payments, payment_amount, payment_or_refund, payment_intent_or_refund_id,
    total_benefits_consumed_at_retail_price, total_benefits_consumed_at_discounted_price, reason,
    early_cancellation_fee, refund_ids, is_succeeded, is_test, created_at, updated_at, plan_name, species,
    plan_header
  )) stored,
  primary key (organization_id, id)
);

create index cancellation_payment_intents_order                  on cancellation_payment_intents (organization_id, updated_at, id);
create index cancellation_payment_intents_pet                    on cancellation_payment_intents (organization_id, pet, updated_at, id);
create index cancellation_payment_intents_subscription           on cancellation_payment_intents (organization_id, subscription, updated_at, id);
create index cancellation_payment_intents_clinic_id              on cancellation_payment_intents (organization_id, clinic_id, updated_at, id);
create index cancellation_payment_intents_created_at             on cancellation_payment_intents (organization_id, created_at, updated_at, id);
create index cancellation_payment_intents_changed_before_created on cancellation_payment_intents (organization_id, updated_at, id) where updated_at < created_at;

grant select on cancellation_payment_intents to practice_data_api;


create function pet_benefits_record(
  id text, pet text, subscription text, benefit_name text, benefit_description text, wellness_plan_name text,
  is_addon boolean, revenue_to_recognize_per_unit numeric, retail_value numeric, provided numeric,
  remaining numeric, is_unlimited boolean, rounding_addition numeric, is_perk boolean, in_kind_discount numeric,
  parent_petbenefit text, created_at timestamptz, updated_at timestamptz, inactivation_date timestamptz,
  activation_date timestamptz, product_ids text[], removed boolean
) returns text language sql immutable parallel safe
  return '{"id":'                         || coalesce(to_json(id)::text, 'null')
    || ',"pet":'                          || coalesce(to_json(pet)::text, 'null')
    || ',"subscription":'                 || coalesce(to_json(subscription)::text, 'null')
    || ',"benefit_name":'                 || coalesce(to_json(benefit_name)::text, 'null')
    || ',"benefit_description":'          || coalesce(to_json(benefit_description)::text, 'null')
    || ',"wellness_plan_name":'           || coalesce(to_json(wellness_plan_name)::text, 'null')
    || ',"is_addon":'                     || coalesce(is_addon::text, 'null')
    || ',"revenue_to_recognize_per_unit":' || coalesce(case when revenue_to_recognize_per_unit <> 0 and abs(revenue_to_recognize_per_unit) < 0.000001
                                                       then api_tiny(revenue_to_recognize_per_unit) else trim_scale(revenue_to_recognize_per_unit)::text end, 'null')
    || ',"retail_value":'                 || coalesce(case when retail_value <> 0 and abs(retail_value) < 0.000001
                                                      then api_tiny(retail_value) else trim_scale(retail_value)::text end, 'null')
    || ',"provided":'                     || coalesce(case when provided <> 0 and abs(provided) < 0.000001
                                                      then api_tiny(provided) else trim_scale(provided)::text end, 'null')
    || ',"remaining":'                    || coalesce(case when remaining <> 0 and abs(remaining) < 0.000001
                                                      then api_tiny(remaining) else trim_scale(remaining)::text end, 'null')
    || ',"is_unlimited":'                 || coalesce(is_unlimited::text, 'null')
    || ',"rounding_addition":'            || coalesce(case when rounding_addition <> 0 and abs(rounding_addition) < 0.000001
                                                      then api_tiny(rounding_addition) else trim_scale(rounding_addition)::text end, 'null')
    || ',"is_perk":'                      || coalesce(is_perk::text, 'null')
    || ',"in_kind_discount":'             || coalesce(case when in_kind_discount <> 0 and abs(in_kind_discount) < 0.000001
                                                      then api_tiny(in_kind_discount) else trim_scale(in_kind_discount)::text end, 'null')
    || ',"parent_petbenefit":'            || coalesce(to_json(parent_petbenefit)::text, 'null')
    || ',"created_at":'                   || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'                   || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"inactivation_date":'            || coalesce('"' || to_char(inactivation_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"activation_date":'              || coalesce('"' || to_char(activation_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"product_ids":'                  || coalesce(to_json(product_ids)::text, 'null')
    || '}';

create table pet_benefits (
  organization_id               text collate "C" not null,
  id                            text collate "C",
  pet                           text collate "C",
  subscription                  text collate "C",
  benefit_name                  text collate "C",
  benefit_description           text collate "C",
  wellness_plan_name            text collate "C",
  is_addon                      boolean not null default false,
  revenue_to_recognize_per_unit api_decimal,
  retail_value                  api_decimal,
  provided                      api_decimal,
  remaining                     api_decimal,
  is_unlimited                  boolean not null default false,
  rounding_addition             api_decimal,
  is_perk                       boolean not null default false,
  in_kind_discount              api_decimal,
  parent_petbenefit             text collate "C",
  created_at                    api_instant not null default now(),
  updated_at                    api_instant not null default now(),
  inactivation_date             api_instant,
  activation_date               api_instant,
  product_ids                   api_texts not null default '{}',
  removed                       boolean not null default false,
  record                        text not null generated always as (pet_benefits_record(
    id, pet, subscription, benefit_name, benefit_description, wellness_plan_name, is_addon,
    revenue_to_recognize_per_unit, retail_value, provided, remaining, is_unlimited, rounding_addition, is_perk,
    in_kind_discount, parent_petbenefit, created_at, updated_at, inactivation_date, activation_date, product_ids,
    removed
  )) stored,
  primary key (organization_id, id)
);

create index pet_benefits_order                  on pet_benefits (organization_id, updated_at, id);
create index pet_benefits_order_unmarked         on pet_benefits (organization_id, updated_at, id) where not removed;
create index pet_benefits_pet                    on pet_benefits (organization_id, pet, updated_at, id);
create index pet_benefits_pet_unmarked           on pet_benefits (organization_id, pet, updated_at, id) where not removed;
create index pet_benefits_subscription           on pet_benefits (organization_id, subscription, updated_at, id);
create index pet_benefits_subscription_unmarked  on pet_benefits (organization_id, subscription, updated_at, id) where not removed;
create index pet_benefits_created_at             on pet_benefits (organization_id, created_at, updated_at, id);
create index pet_benefits_changed_before_created on pet_benefits (organization_id, updated_at, id) where updated_at < created_at;

grant select on pet_benefits to practice_data_api;


create function products_record(
  id text, clinic text, product_code text, pims_id text, product_name text, retail_price numeric,
  member_price numeric, member_cancellation_price numeric, created_at timestamptz, modified_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'                      || coalesce(to_json(id)::text, 'null')
    || ',"clinic":'                    || coalesce(to_json(clinic)::text, 'null')
    || ',"product_code":'              || coalesce(to_json(product_code)::text, 'null')
    || ',"pims_id":'                   || coalesce(to_json(pims_id)::text, 'null')
    || ',"product_name":'              || coalesce(to_json(product_name)::text, 'null')
    || ',"retail_price":'              || coalesce(case when retail_price <> 0 and abs(retail_price) < 0.000001
                                                   then api_tiny(retail_price) else trim_scale(retail_price)::text end, 'null')
    || ',"member_price":'              || coalesce(case when member_price <> 0 and abs(member_price) < 0.000001
                                                   then api_tiny(member_price) else trim_scale(member_price)::text end, 'null')
    || ',"member_cancellation_price":' || coalesce(case when member_cancellation_price <> 0 and abs(member_cancellation_price) < 0.000001
                                                   then api_tiny(member_cancellation_price) else trim_scale(member_cancellation_price)::text end, 'null')
    || ',"created_at":'                || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"modified_at":'               || coalesce('"' || to_char(modified_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table products (
  organization_id           text collate "C" not null,
  id                        text collate "C",
  clinic                    text collate "C",
  product_code              text collate "C",
  pims_id                   text collate "C",
  product_name              text collate "C",
  retail_price              api_decimal,
  member_price              api_decimal,
  member_cancellation_price api_decimal,
  created_at                api_instant not null default now(),
  modified_at               api_instant not null default now(),
  record                    text not null generated always as (products_record(
    id, clinic, product_code, pims_id, product_name, retail_price, member_price, member_cancellation_price,
    created_at, modified_at
  )) stored,
  primary key (organization_id, id)
);

create index products_order                  on products (organization_id, modified_at, id);
create index products_clinic                 on products (organization_id, clinic, modified_at, id);
create index products_product_code           on products (organization_id, product_code, modified_at, id);
create index products_pims_id                on products (organization_id, pims_id, modified_at, id);
create index products_product_name           on products (organization_id, product_name, modified_at, id);
create index products_created_at             on products (organization_id, created_at, modified_at, id);
create index products_changed_before_created on products (organization_id, modified_at, id) where modified_at < created_at;

grant select on products to practice_data_api;


create function consumption_logs_record(
  id text, home_clinic text, servicing_clinic text, invoice_pims_id text, invoice_date timestamptz,
  invoice_line text, invoice_line_aje_delta_discounted numeric, invoice_line_aje_delta_gross numeric,
  invoice_line_pims_id text, pet text, pet_benefit text, product_code text, product_name text,
  qty_available_on_plan numeric, qty_consumed numeric, qty_in_plan numeric, qty_out_of_plan numeric,
  qty_remaining numeric, revenue_in_plan_total numeric, revenue_out_of_plan_total numeric,
  revenue_to_recognize_total numeric, revenue_to_recognize_per_unit numeric, is_unlimited_benefit boolean,
  subscription text, created_at timestamptz, updated_at timestamptz, is_deleted boolean
) returns text language sql immutable parallel safe
  return '{"id":'                         || coalesce(to_json(id)::text, 'null')
    || ',"home_clinic":'                  || coalesce(to_json(home_clinic)::text, 'null')
    || ',"servicing_clinic":'             || coalesce(to_json(servicing_clinic)::text, 'null')
    || ',"invoice_pims_id":'              || coalesce(to_json(invoice_pims_id)::text, 'null')
    || ',"invoice_date":'                 || coalesce('"' || to_char(invoice_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"invoice_line":'                 || coalesce(to_json(invoice_line)::text, 'null')
    || ',"invoice_line_aje_delta_discounted":' || coalesce(case when invoice_line_aje_delta_discounted <> 0 and abs(invoice_line_aje_delta_discounted) < 0.000001
                                                           then api_tiny(invoice_line_aje_delta_discounted) else trim_scale(invoice_line_aje_delta_discounted)::text end, 'null')
    || ',"invoice_line_aje_delta_gross":' || coalesce(case when invoice_line_aje_delta_gross <> 0 and abs(invoice_line_aje_delta_gross) < 0.000001
                                                      then api_tiny(invoice_line_aje_delta_gross) else trim_scale(invoice_line_aje_delta_gross)::text end, 'null')
    || ',"invoice_line_pims_id":'         || coalesce(to_json(invoice_line_pims_id)::text, 'null')
    || ',"pet":'                          || coalesce(to_json(pet)::text, 'null')
    || ',"pet_benefit":'                  || coalesce(to_json(pet_benefit)::text, 'null')
    || ',"product_code":'                 || coalesce(to_json(product_code)::text, 'null')
    || ',"product_name":'                 || coalesce(to_json(product_name)::text, 'null')
    || ',"qty_available_on_plan":'        || coalesce(case when qty_available_on_plan <> 0 and abs(qty_available_on_plan) < 0.000001
                                                      then api_tiny(qty_available_on_plan) else trim_scale(qty_available_on_plan)::text end, 'null')
    || ',"qty_consumed":'                 || coalesce(case when qty_consumed <> 0 and abs(qty_consumed) < 0.000001
                                                      then api_tiny(qty_consumed) else trim_scale(qty_consumed)::text end, 'null')
    || ',"qty_in_plan":'                  || coalesce(case when qty_in_plan <> 0 and abs(qty_in_plan) < 0.000001
                                                      then api_tiny(qty_in_plan) else trim_scale(qty_in_plan)::text end, 'null')
    || ',"qty_out_of_plan":'              || coalesce(case when qty_out_of_plan <> 0 and abs(qty_out_of_plan) < 0.000001
                                                      then api_tiny(qty_out_of_plan) else trim_scale(qty_out_of_plan)::text end, 'null')
    || ',"qty_remaining":'                || coalesce(case when qty_remaining <> 0 and abs(qty_remaining) < 0.000001
                                                      then api_tiny(qty_remaining) else trim_scale(qty_remaining)::text end, 'null')
    || ',"revenue_in_plan_total":'        || coalesce(case when revenue_in_plan_total <> 0 and abs(revenue_in_plan_total) < 0.000001
                                                      then api_tiny(revenue_in_plan_total) else trim_scale(revenue_in_plan_total)::text end, 'null')
    || ',"revenue_out_of_plan_total":'    || coalesce(case when revenue_out_of_plan_total <> 0 and abs(revenue_out_of_plan_total) < 0.000001
                                                      then api_tiny(revenue_out_of_plan_total) else trim_scale(revenue_out_of_plan_total)::text end, 'null')
    || ',"revenue_to_recognize_total":'   || coalesce(case when revenue_to_recognize_total <> 0 and abs(revenue_to_recognize_total) < 0.000001
                                                      then api_tiny(revenue_to_recognize_total) else trim_scale(revenue_to_recognize_total)::text end, 'null')
    || ',"revenue_to_recognize_per_unit":' || coalesce(case when revenue_to_recognize_per_unit <> 0 and abs(revenue_to_recognize_per_unit) < 0.000001
                                                       then api_tiny(revenue_to_recognize_per_unit) else trim_scale(revenue_to_recognize_per_unit)::text end, 'null')
    || ',"is_unlimited_benefit":'         || coalesce(is_unlimited_benefit::text, 'null')
    || ',"subscription":'                 || coalesce(to_json(subscription)::text, 'null')
    || ',"created_at":'                   || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'                   || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"is_deleted":'                   || coalesce(is_deleted::text, 'null')
    || '}';

create table consumption_logs (
  organization_id                   text collate "C" not null,
  id                                text collate "C",
  home_clinic                       text collate "C",
  servicing_clinic                  text collate "C",
  invoice_pims_id                   text collate "C",
  invoice_date                      api_instant,
  invoice_line                      text collate "C",
  invoice_line_aje_delta_discounted api_decimal,
  invoice_line_aje_delta_gross      api_decimal,
  invoice_line_pims_id              text collate "C",
  pet                               text collate "C",
  pet_benefit                       text collate "C",
  product_code                      text collate "C",
  product_name                      text collate "C",
  qty_available_on_plan             api_decimal,
  qty_consumed                      api_decimal,
  qty_in_plan                       api_decimal,
  qty_out_of_plan                   api_decimal,
  qty_remaining                     api_decimal,
  revenue_in_plan_total             api_decimal,
  revenue_out_of_plan_total         api_decimal,
  revenue_to_recognize_total        api_decimal,
  revenue_to_recognize_per_unit     api_decimal,
  is_unlimited_benefit              boolean not null default false,
  subscription                      text collate "C",
  created_at                        api_instant not null default now(),
  updated_at                        api_instant not null default now(),
  is_deleted                        boolean not null default false,
  record                            text not null generated always as (consumption_logs_record(
    id, home_clinic, servicing_clinic, invoice_pims_id, invoice_date, invoice_line,
    invoice_line_aje_delta_discounted, invoice_line_aje_delta_gross, invoice_line_pims_id, pet, pet_benefit,
    product_code, product_name, qty_available_on_plan, qty_consumed, qty_in_plan, qty_out_of_plan, qty_remaining,
    revenue_in_plan_total, revenue_out_of_plan_total, revenue_to_recognize_total, revenue_to_recognize_per_unit,
    is_unlimited_benefit, subscription, created_at, updated_at, is_deleted
  )) stored,
  primary key (organization_id, id)
);

create index consumption_logs_order                  on consumption_logs (organization_id, updated_at, id);
create index consumption_logs_order_unmarked         on consumption_logs (organization_id, updated_at, id) where not is_deleted;
create index consumption_logs_pet                    on consumption_logs (organization_id, pet, updated_at, id);
create index consumption_logs_pet_unmarked           on consumption_logs (organization_id, pet, updated_at, id) where not is_deleted;
create index consumption_logs_subscription           on consumption_logs (organization_id, subscription, updated_at, id);
create index consumption_logs_subscription_unmarked  on consumption_logs (organization_id, subscription, updated_at, id) where not is_deleted;
create index consumption_logs_home_clinic            on consumption_logs (organization_id, home_clinic, updated_at, id);
create index consumption_logs_home_clinic_unmarked   on consumption_logs (organization_id, home_clinic, updated_at, id) where not is_deleted;
create index consumption_logs_product_code           on consumption_logs (organization_id, product_code, updated_at, id);
create index consumption_logs_product_code_unmarked  on consumption_logs (organization_id, product_code, updated_at, id) where not is_deleted;
create index consumption_logs_invoice_line           on consumption_logs (organization_id, invoice_line, updated_at, id);
create index consumption_logs_invoice_line_unmarked  on consumption_logs (organization_id, invoice_line, updated_at, id) where not is_deleted;
create index consumption_logs_created_at             on consumption_logs (organization_id, created_at, updated_at, id);
create index consumption_logs_changed_before_created on consumption_logs (organization_id, updated_at, id) where updated_at < created_at;

grant select on consumption_logs to practice_data_api;


create function invoices_record(
  id text, home_clinic text, servicing_clinic text, client_id text, pet text, invoice_pims_id text,
  invoice_date timestamptz, status text, subtotal numeric, discount numeric, tax numeric, total numeric,
  is_deleted boolean, deleted_at timestamptz, created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'             || coalesce(to_json(id)::text, 'null')
    || ',"home_clinic":'      || coalesce(to_json(home_clinic)::text, 'null')
    || ',"servicing_clinic":' || coalesce(to_json(servicing_clinic)::text, 'null')
    || ',"client_id":'        || coalesce(to_json(client_id)::text, 'null')
    || ',"pet":'              || coalesce(to_json(pet)::text, 'null')
    || ',"invoice_pims_id":'  || coalesce(to_json(invoice_pims_id)::text, 'null')
    || ',"invoice_date":'     || coalesce('"' || to_char(invoice_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"status":'           || coalesce(to_json(status)::text, 'null')
    || ',"subtotal":'         || coalesce(case when subtotal <> 0 and abs(subtotal) < 0.000001 then api_tiny(subtotal) else trim_scale(subtotal)::text end, 'null')
    || ',"discount":'         || coalesce(case when discount <> 0 and abs(discount) < 0.000001 then api_tiny(discount) else trim_scale(discount)::text end, 'null')
    || ',"tax":'              || coalesce(case when tax <> 0 and abs(tax) < 0.000001 then api_tiny(tax) else trim_scale(tax)::text end, 'null')
    || ',"total":'            || coalesce(case when total <> 0 and abs(total) < 0.000001 then api_tiny(total) else trim_scale(total)::text end, 'null')
    || ',"is_deleted":'       || coalesce(is_deleted::text, 'null')
    || ',"deleted_at":'       || coalesce('"' || to_char(deleted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"created_at":'       || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'       || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table invoices (
  organization_id  text collate "C" not null,
  id               text collate "C",
  home_clinic      text collate "C",
  servicing_clinic text collate "C",
  client_id        text collate "C",
  pet              text collate "C",
  invoice_pims_id  text collate "C",
  invoice_date     api_instant,
  status           text collate "C",
  subtotal         api_decimal,
  discount         api_decimal,
  tax              api_decimal,
  total            api_decimal,
  is_deleted       boolean not null default false,
  deleted_at       api_instant,
  created_at       api_instant not null default now(),
  updated_at       api_instant not null default now(),
  record           text not null generated always as (invoices_record(
    id, home_clinic, servicing_clinic, client_id, pet, invoice_pims_id, invoice_date, status, subtotal, discount,
    tax, total, is_deleted, deleted_at, created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index invoices_order                     on invoices (organization_id, updated_at, id);
create index invoices_order_unmarked            on invoices (organization_id, updated_at, id) where not is_deleted;
create index invoices_home_clinic               on invoices (organization_id, home_clinic, updated_at, id);
create index invoices_home_clinic_unmarked      on invoices (organization_id, home_clinic, updated_at, id) where not is_deleted;
create index invoices_servicing_clinic          on invoices (organization_id, servicing_clinic, updated_at, id);
create index invoices_servicing_clinic_unmarked on invoices (organization_id, servicing_clinic, updated_at, id) where not is_deleted;
create index invoices_client_id                 on invoices (organization_id, client_id, updated_at, id);
create index invoices_client_id_unmarked        on invoices (organization_id, client_id, updated_at, id) where not is_deleted;
create index invoices_pet                       on invoices (organization_id, pet, updated_at, id);
create index invoices_pet_unmarked              on invoices (organization_id, pet, updated_at, id) where not is_deleted;
create index invoices_invoice_pims_id           on invoices (organization_id, invoice_pims_id, updated_at, id);
create index invoices_invoice_pims_id_unmarked  on invoices (organization_id, invoice_pims_id, updated_at, id) where not is_deleted;
create index invoices_status                    on invoices (organization_id, status, updated_at, id);
create index invoices_status_unmarked           on invoices (organization_id, status, updated_at, id) where not is_deleted;
-- A search by clinic takes the home clinic's rows, and of the servicing clinic's those that the first leave out.
create index invoices_visiting                  on invoices (organization_id, servicing_clinic, updated_at, id) where home_clinic is distinct from servicing_clinic;
create index invoices_created_at                on invoices (organization_id, created_at, updated_at, id);
create index invoices_changed_before_created    on invoices (organization_id, updated_at, id) where updated_at < created_at;

grant select on invoices to practice_data_api;


create function invoice_lines_record(
  id text, invoice text, clinic text, pet text, invoice_line_pims_id text, product_code text, product_name text,
  quantity numeric, unit_price numeric, discount numeric, total numeric, is_deleted boolean, deleted_at timestamptz,
  created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'                 || coalesce(to_json(id)::text, 'null')
    || ',"invoice":'              || coalesce(to_json(invoice)::text, 'null')
    || ',"clinic":'               || coalesce(to_json(clinic)::text, 'null')
    || ',"pet":'                  || coalesce(to_json(pet)::text, 'null')
    || ',"invoice_line_pims_id":' || coalesce(to_json(invoice_line_pims_id)::text, 'null')
    || ',"product_code":'         || coalesce(to_json(product_code)::text, 'null')
    || ',"product_name":'         || coalesce(to_json(product_name)::text, 'null')
    || ',"quantity":'             || coalesce(case when quantity <> 0 and abs(quantity) < 0.000001 then api_tiny(quantity) else trim_scale(quantity)::text end, 'null')
    || ',"unit_price":'           || coalesce(case when unit_price <> 0 and abs(unit_price) < 0.000001
                                              then api_tiny(unit_price) else trim_scale(unit_price)::text end, 'null')
    || ',"discount":'             || coalesce(case when discount <> 0 and abs(discount) < 0.000001 then api_tiny(discount) else trim_scale(discount)::text end, 'null')
    || ',"total":'                || coalesce(case when total <> 0 and abs(total) < 0.000001 then api_tiny(total) else trim_scale(total)::text end, 'null')
    || ',"is_deleted":'           || coalesce(is_deleted::text, 'null')
    || ',"deleted_at":'           || coalesce('"' || to_char(deleted_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"created_at":'           || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'           || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table invoice_lines (
  organization_id      text collate "C" not null,
  id                   text collate "C",
  invoice              text collate "C",
  clinic               text collate "C",
  pet                  text collate "C",
  invoice_line_pims_id text collate "C",
  product_code         text collate "C",
  product_name         text collate "C",
  quantity             api_decimal,
  unit_price           api_decimal,
  discount             api_decimal,
  total                api_decimal,
  is_deleted           boolean not null default false,
  deleted_at           api_instant,
  created_at           api_instant not null default now(),
  updated_at           api_instant not null default now(),
  record               text not null generated always as (invoice_lines_record(
    id, invoice, clinic, pet, invoice_line_pims_id, product_code, product_name, quantity, unit_price, discount,
    total, is_deleted, deleted_at, created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index invoice_lines_order                  on invoice_lines (organization_id, updated_at, id);
create index invoice_lines_order_unmarked         on invoice_lines (organization_id, updated_at, id) where not is_deleted;
create index invoice_lines_invoice                on invoice_lines (organization_id, invoice, updated_at, id);
create index invoice_lines_invoice_unmarked       on invoice_lines (organization_id, invoice, updated_at, id) where not is_deleted;
create index invoice_lines_clinic                 on invoice_lines (organization_id, clinic, updated_at, id);
create index invoice_lines_clinic_unmarked        on invoice_lines (organization_id, clinic, updated_at, id) where not is_deleted;
create index invoice_lines_pet                    on invoice_lines (organization_id, pet, updated_at, id);
create index invoice_lines_pet_unmarked           on invoice_lines (organization_id, pet, updated_at, id) where not is_deleted;
create index invoice_lines_product_code           on invoice_lines (organization_id, product_code, updated_at, id);
create index invoice_lines_product_code_unmarked  on invoice_lines (organization_id, product_code, updated_at, id) where not is_deleted;
create index invoice_lines_created_at             on invoice_lines (organization_id, created_at, updated_at, id);
create index invoice_lines_changed_before_created on invoice_lines (organization_id, updated_at, id) where updated_at < created_at;

grant select on invoice_lines to practice_data_api;


create function charges_record(
  id text, home_clinic text, servicing_clinic text, invoice text, invoice_pims_id numeric, payment_method_id text,
  status text, original_amount numeric, current_amount numeric, net_paid numeric, paid_amount numeric,
  overpaid_amount numeric, outstanding_balance numeric, refunded_amount numeric, created_at timestamptz,
  updated_at timestamptz, pet text
) returns text language sql immutable parallel safe
  return '{"id":'                || coalesce(to_json(id)::text, 'null')
    || ',"home_clinic":'         || coalesce(to_json(home_clinic)::text, 'null')
    || ',"servicing_clinic":'    || coalesce(to_json(servicing_clinic)::text, 'null')
    || ',"invoice":'             || coalesce(to_json(invoice)::text, 'null')
    || ',"invoice_pims_id":'     || coalesce(case when invoice_pims_id <> 0 and abs(invoice_pims_id) < 0.000001
                                             then api_tiny(invoice_pims_id) else trim_scale(invoice_pims_id)::text end, 'null')
    || ',"payment_method_id":'   || coalesce(to_json(payment_method_id)::text, 'null')
    || ',"status":'              || coalesce(to_json(status)::text, 'null')
    || ',"original_amount":'     || coalesce(case when original_amount <> 0 and abs(original_amount) < 0.000001
                                             then api_tiny(original_amount) else trim_scale(original_amount)::text end, 'null')
    || ',"current_amount":'      || coalesce(case when current_amount <> 0 and abs(current_amount) < 0.000001
                                             then api_tiny(current_amount) else trim_scale(current_amount)::text end, 'null')
    || ',"net_paid":'            || coalesce(case when net_paid <> 0 and abs(net_paid) < 0.000001 then api_tiny(net_paid) else trim_scale(net_paid)::text end, 'null')
    || ',"paid_amount":'         || coalesce(case when paid_amount <> 0 and abs(paid_amount) < 0.000001
                                             then api_tiny(paid_amount) else trim_scale(paid_amount)::text end, 'null')
    || ',"overpaid_amount":'     || coalesce(case when overpaid_amount <> 0 and abs(overpaid_amount) < 0.000001
                                             then api_tiny(overpaid_amount) else trim_scale(overpaid_amount)::text end, 'null')
    || ',"outstanding_balance":' || coalesce(case when outstanding_balance <> 0 and abs(outstanding_balance) < 0.000001
                                             then api_tiny(outstanding_balance) else trim_scale(outstanding_balance)::text end, 'null')
    || ',"refunded_amount":'     || coalesce(case when refunded_amount <> 0 and abs(refunded_amount) < 0.000001
                                             then api_tiny(refunded_amount) else trim_scale(refunded_amount)::text end, 'null')
    || ',"created_at":'          || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'          || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table charges (
  organization_id     text collate "C" not null,
  id                  text collate "C",
  home_clinic         text collate "C",
  servicing_clinic    text collate "C",
  invoice             text collate "C",
  invoice_pims_id     api_decimal,
  payment_method_id   text collate "C",
  status              text collate "C",
  original_amount     api_decimal,
  current_amount      api_decimal,
  net_paid            api_decimal,
  paid_amount         api_decimal,
  overpaid_amount     api_decimal,
  outstanding_balance api_decimal,
  refunded_amount     api_decimal,
  created_at          api_instant not null default now(),
  updated_at          api_instant not null default now(),
  pet                 text collate "C",
  record              text not null generated always as (charges_record(
    id, home_clinic, servicing_clinic, invoice, invoice_pims_id, payment_method_id, status, original_amount,
    current_amount, net_paid, paid_amount, overpaid_amount, outstanding_balance, refunded_amount, created_at,
    updated_at, pet
  )) stored,
  primary key (organization_id, id)
);

create index charges_order                  on charges (organization_id, updated_at, id);
create index charges_home_clinic            on charges (organization_id, home_clinic, updated_at, id);
create index charges_servicing_clinic       on charges (organization_id, servicing_clinic, updated_at, id);
create index charges_pet                    on charges (organization_id, pet, updated_at, id);
create index charges_status                 on charges (organization_id, status, updated_at, id);
create index charges_invoice                on charges (organization_id, invoice, updated_at, id);
create index charges_invoice_pims_id        on charges (organization_id, invoice_pims_id, updated_at, id);
-- A search by clinic takes the home clinic's rows, and of the servicing clinic's those that the first leave out.
create index charges_visiting               on charges (organization_id, servicing_clinic, updated_at, id) where home_clinic is distinct from servicing_clinic;
create index charges_created_at             on charges (organization_id, created_at, updated_at, id);
create index charges_changed_before_created on charges (organization_id, updated_at, id) where updated_at < created_at;

grant select on charges to practice_data_api;


create function charge_payments_record(
  id text, currency text, status text, amount numeric, charge text, created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'       || coalesce(to_json(id)::text, 'null')
    || ',"currency":'   || coalesce(to_json(currency)::text, 'null')
    || ',"status":'     || coalesce(to_json(status)::text, 'null')
    || ',"amount":'     || coalesce(case when amount <> 0 and abs(amount) < 0.000001 then api_tiny(amount) else trim_scale(amount)::text end, 'null')
    || ',"charge":'     || coalesce(to_json(charge)::text, 'null')
    || ',"created_at":' || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":' || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table charge_payments (
  organization_id text collate "C" not null,
  id              text collate "C",
  currency        text collate "C",
  status          text collate "C",
  amount          api_decimal,
  charge          text collate "C",
  created_at      api_instant not null default now(),
  updated_at      api_instant not null default now(),
  record          text not null generated always as (charge_payments_record(
    id, currency, status, amount, charge, created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index charge_payments_order                  on charge_payments (organization_id, updated_at, id);
create index charge_payments_charge                 on charge_payments (organization_id, charge, updated_at, id);
create index charge_payments_status                 on charge_payments (organization_id, status, updated_at, id);
create index charge_payments_created_at             on charge_payments (organization_id, created_at, updated_at, id);
create index charge_payments_changed_before_created on charge_payments (organization_id, updated_at, id) where updated_at < created_at;

grant select on charge_payments to practice_data_api;


create function charge_adjustments_record(
  id text, charge text, amount numeric, reason text, created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'       || coalesce(to_json(id)::text, 'null')
    || ',"charge":'     || coalesce(to_json(charge)::text, 'null')
    || ',"amount":'     || coalesce(case when amount <> 0 and abs(amount) < 0.000001 then api_tiny(amount) else trim_scale(amount)::text end, 'null')
    || ',"reason":'     || coalesce(to_json(reason)::text, 'null')
    || ',"created_at":' || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":' || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table charge_adjustments (
  organization_id text collate "C" not null,
  id              text collate "C",
  charge          text collate "C",
  amount          api_decimal,
  reason          text collate "C",
  created_at      api_instant not null default now(),
  updated_at      api_instant not null default now(),
  record          text not null generated always as (charge_adjustments_record(
    id, charge, amount, reason, created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index charge_adjustments_order                  on charge_adjustments (organization_id, updated_at, id);
create index charge_adjustments_charge                 on charge_adjustments (organization_id, charge, updated_at, id);
create index charge_adjustments_created_at             on charge_adjustments (organization_id, created_at, updated_at, id);
create index charge_adjustments_changed_before_created on charge_adjustments (organization_id, updated_at, id) where updated_at < created_at;

grant select on charge_adjustments to practice_data_api;


create function charge_refunds_record(
  id text, refund_date timestamptz, amount numeric, charge text, created_at timestamptz, updated_at timestamptz
) returns text language sql immutable parallel safe
  return '{"id":'        || coalesce(to_json(id)::text, 'null')
    || ',"refund_date":' || coalesce('"' || to_char(refund_date at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"amount":'      || coalesce(case when amount <> 0 and abs(amount) < 0.000001 then api_tiny(amount) else trim_scale(amount)::text end, 'null')
    || ',"charge":'      || coalesce(to_json(charge)::text, 'null')
    || ',"created_at":'  || coalesce('"' || to_char(created_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || ',"updated_at":'  || coalesce('"' || to_char(updated_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') || '"', 'null')
    || '}';

create table charge_refunds (
  organization_id text collate "C" not null,
  id              text collate "C",
  refund_date     api_instant,
  amount          api_decimal,
  charge          text collate "C",
  created_at      api_instant not null default now(),
  updated_at      api_instant not null default now(),
  record          text not null generated always as (charge_refunds_record(
    id, refund_date, amount, charge, created_at, updated_at
  )) stored,
  primary key (organization_id, id)
);

create index charge_refunds_order                  on charge_refunds (organization_id, updated_at, id);
create index charge_refunds_charge                 on charge_refunds (organization_id, charge, updated_at, id);
create index charge_refunds_created_at             on charge_refunds (organization_id, created_at, updated_at, id);
create index charge_refunds_changed_before_created on charge_refunds (organization_id, updated_at, id) where updated_at < created_at;

grant select on charge_refunds to practice_data_api;


create table api_keys (
  organization_id text collate "C" not null,
  id              text collate "C" not null,
  name            text not null,
  prefix          text not null,
  key_hash        bytea not null unique,
  created_at      timestamptz not null default now(),
  last_used_on    date,
  revoked_at      timestamptz,
  primary key (organization_id, id)
);

-- The data API can only select; this is the one trace that it leaves.
create function touch_api_key(hash bytea) returns void language sql security definer set search_path from current
begin atomic
  update api_keys set last_used_on = (now() at time zone 'UTC')::date
  where key_hash = hash and last_used_on is distinct from (now() at time zone 'UTC')::date;
end;

revoke all on function touch_api_key from public;
grant execute on function touch_api_key to practice_data_api;
grant select on api_keys to practice_data_api;
grant select on migrations to practice_data_api, practice_data_intake, practice_data_worker;
grant select, update (is_deleted, deleted_at, updated_at) on invoices, invoice_lines to practice_data_worker;
`)
