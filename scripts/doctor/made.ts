/** The text of `src/operations/doctor/migrated.json`: a line for each object and each privilege of a role. */
import type { PgClient } from "@effect/sql-pg"
import { Effect } from "effect"
import * as Catalog from "../../src/database/Catalog.ts"

const linesOf = (rows: ReadonlyArray<object>) => rows.map((row) => `\n    ${JSON.stringify(row)}`).join(",")

// The search path of who migrated.
const ofLogin = "'$user', "

/**
 * Privileges that everyone has are those of `public` alone.
 *
 * @param sql a database that has all migrations, in the schema `public`
 */
export const made = (sql: PgClient.PgClient) =>
  Effect.map(Catalog.read(sql), ({ parts, privileges }) => {
    const ofEveryone = privileges.filter(({ grantee }) => grantee === "public")
    const texts = new Set(ofEveryone.map(Catalog.textOf))
    const ofRoles = privileges.filter(
      (privilege) => privilege.grantee.startsWith("practice_data_") && !texts.has(Catalog.textOf(privilege))
    )
    const text = `{\n  "parts": [${linesOf(parts)}\n  ],\n  "privileges": [${linesOf([...ofRoles, ...ofEveryone])}\n  ]\n}\n`
    return text.replaceAll(ofLogin, "")
  })
