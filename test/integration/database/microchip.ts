/** A field to add to pets, for tests. Its function has every field of pets: add a new one here too. */
import type { Field } from "../../../src/database/migrations/addField.ts"

/** A field that pets do not have. */
export const microchip: Field = {
  table: "pets",
  field: "microchipNumber",
  column: "microchip_number",
  type: `text collate "C"`,
  record: `
    create or replace function pets_record(
      id text, name text, species text, breed text, sex text, date_of_birth date, clinic text, client_id text,
      created_at timestamptz, updated_at timestamptz, microchip_number text
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
      || ',"microchipNumber":' || coalesce(to_json(microchip_number)::text, 'null')
      || '}'`,
  indexes: { pets_microchip_number: "(organization_id, microchip_number, updated_at, id)" }
}
