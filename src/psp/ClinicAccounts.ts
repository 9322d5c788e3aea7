/** The processor account that is connected to a clinic of the current organization. */
import { Context, Duration, Effect, Layer, Schema } from "effect"
import { rowsOf } from "../database/Columns.ts"
import { RecordDatabase } from "../database/Database.ts"
import { RecordStoreDown } from "../api/Errors.ts"
import { CurrentOrganization } from "../api/Authorization.ts"

interface ClinicAccount {
  readonly organization: string
  readonly clinic: string
  readonly account: string | null
}

const accounts = rowsOf(Schema.Struct({ processor_account: Schema.NullOr(Schema.String) }))

export class ClinicAccounts extends Context.Service<ClinicAccounts>()("practice-data/psp/ClinicAccounts", {
  make: Effect.map(RecordDatabase, (sql) => ({
    /** The account of a clinic: null when it has none, undefined when the organization has no such clinic. */
    find: Effect.fn("ClinicAccounts.find")(function* (clinic: string) {
      const id = yield* CurrentOrganization.id
      const [row] = yield* sql.run(
        { key: `organization ${id}`, within: Duration.seconds(2), unavailable: RecordStoreDown.from },
        accounts(sql`select processor_account from clinics where organization_id = ${id} and id = ${clinic}`)
      )
      return row?.processor_account
    })
  }))
}) {
  /** The accounts in the table of clinics. */
  static readonly layer = Layer.effect(ClinicAccounts, ClinicAccounts.make)

  /** The fake. */
  static readonly layerMemory = (clinics: ReadonlyArray<ClinicAccount> = []) =>
    Layer.succeed(ClinicAccounts, {
      find: (clinic) =>
        Effect.map(
          CurrentOrganization.id,
          (id) => clinics.find((known) => known.organization === id && known.clinic === clinic)?.account
        )
    })
}
