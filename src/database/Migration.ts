/** The type of a migration. */
import type { Effect } from "effect"
import type { SqlClient } from "effect/sql"
import type { AddFieldError } from "./addField.ts"

export type Statements = Effect.Effect<void, AddFieldError, SqlClient.SqlClient>

/**
 * A migration, which runs in a transaction with its record unless it is online. An online one runs until it has succeeded
 * once, maybe in several processes.
 */
export type Migration = Statements | { readonly online: Statements }

/** Migrations by their names. */
export type Migrations = Readonly<Record<string, Migration>>
