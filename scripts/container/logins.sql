-- The logins of compose.yaml, for psql 15 or later as a superuser. The roles are made here, so that the service's login
-- has them before the first migration; by the owner, so that it may grant them to other logins.
\getenv owner OWNER_PASSWORD
\getenv service SERVICE_PASSWORD
create role owner login createrole password :'owner';
create database practice owner owner;
set role owner;
create role practice_data_api;
create role practice_data_intake;
create role practice_data_worker;
create role practice_data_writer;
create role service_1 login password :'service'
  in role practice_data_api, practice_data_intake, practice_data_worker;
