/** `organizations` and `erase`: the organizations, and the deletion of records for good. */
import { Effect, Layer, Option, Record } from "effect"
import { Argument, Command } from "effect/cli"
import type { SqlError } from "effect/sql/SqlError"
import { kindOf } from "../database/SqlFailure.ts"
import * as Commands from "../operations/Commands.ts"
import * as Erasure from "../operations/Erasure.ts"
import { counted } from "../operations/Format.ts"
import * as Organizations from "../operations/Organizations.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, refused, Unavailable } from "./Usage.ts"

const databases = Layer.merge(Operators.tasks, Operators.keys)

const id = Argument.String("id").pipe(
  Argument.withSchema(Commands.Line("the id of an organization")),
  Argument.withDescription("Id of the organization, as in its records")
)

const name = Operators.line("name", "the name of the organization", "Name, as shown by its API (required)")

const unknown = (organization: string) => refused(`No organization ${organization}.`)

const list = command("organizations list", databases, {
  description: "List organizations by id, with their numbers of valid API keys and signing secrets",
  examples: [["practice-data organizations list"], ["practice-data organizations list --limit 1000 --json"]],
  flags: { limit: Output.limit("organizations"), json: Output.json }
})(function* ({ json, limit }) {
  const fields = ["id", "name", "created_at", "keys", "secrets", "closed_at"]
  yield* Output.rows(json, yield* Organizations.list(limit), fields)
})

const create = command("organizations create", Operators.tasks, {
  description: "Create an organization. For a deleted one, also reopen its intake.",
  examples: [["practice-data organizations create org_1 --name 'Happy Paws'", "Before its first API key"]],
  flags: { id, name }
})(function* (given) {
  const done = yield* Organizations.create(yield* Commands.commandLine, given)
  if (done === undefined) return yield* refused(`Organization ${given.id} already exists. Nothing was changed.`)
  yield* Output.print(done === "created" ? `Created ${given.id}` : `Opened the intake of ${given.id}`)
})

const rename = command("organizations rename", Operators.tasks, {
  description: "Rename an organization",
  examples: [["practice-data organizations rename org_1 --name 'Happy Paws and Claws'"]],
  flags: { id, name }
})(function* (given) {
  if (!(yield* Organizations.rename(yield* Commands.commandLine, given))) return yield* unknown(given.id)
  yield* Output.print(`Renamed ${given.id}`)
})

/** Fails before anything is changed if the login lacks a privilege. */
const permitted = Effect.flatMap(
  Organizations.lackingPrivilege,
  Option.match({ onNone: () => Effect.void, onSome: refused })
)

/** Explains that a retry continues a deletion that met the lock of another transaction. */
const resumable = <A, R>(deleting: Effect.Effect<A, SqlError, R>) =>
  Effect.mapError(deleting, (error) =>
    kindOf(error) === "Busy"
      ? new Unavailable({
          message: "Rows are locked by another transaction. Deleted rows stay deleted; run the command again to resume."
        })
      : error
  )

const table = (counts: Erasure.Counts) =>
  Output.rows(
    false,
    Object.entries(counts).map(([of, records]) => ({ table: of, records })),
    ["table", "records"]
  )

const yes = Output.flag("yes", "Delete; without it, only count")

const copies = [
  "Readers of changes, such as `sync`, get the removals; with --soft-delete they mark rows.",
  "Copies by search, exports and backups keep the records: delete them there."
]

const remove = command("organizations delete", databases, {
  description: `Delete an organization with its records, in two steps. First the intake refuses its deliveries, and its records are deleted, so that readers of changes get the removals. Then --finish revokes its API keys, and deletes tasks and secrets. Stop its loader first.

You can kill it at any point; run it again to resume. The audit log is kept, and the intake refuses deliveries until you create the organization again.`,
  examples: [
    ["practice-data organizations delete org_1 --yes", "Delete its records"],
    ["practice-data organizations delete org_1 --finish --yes", "When its readers are in step"]
  ],
  flags: { id, finish: Output.flag("finish", "Revoke its API keys, and delete the rest"), yes }
})(function* ({ finish, id: organization, yes: isSure }) {
  yield* permitted
  const before = yield* Organizations.stateOf(organization)
  if (!before.isKnown && !before.isClosed && !before.hasRecords) return yield* unknown(organization)
  const deleting = `practice-data organizations delete ${organization}`
  if (finish && (!before.isClosed || before.hasRecords)) {
    return yield* refused(`${organization} has records or an open intake. First run: ${deleting} --yes`)
  }
  if (!isSure && finish) {
    const used = before.keys.map(({ last_used_on }) => last_used_on ?? "").reduce((a, b) => (a > b ? a : b), "")
    const last = used === "" ? "" : `, last used on ${used},`
    const revoked = counted(before.keys.length, "API key")
    return yield* refused(`Nothing was changed. Add --yes to revoke ${revoked}${last} and delete the rest.`)
  }
  if (!isSure) {
    yield* table(yield* Organizations.countRecords(organization))
    return yield* refused("Nothing was changed. Add --yes to close the intake and delete the records.")
  }
  const actor = yield* Commands.commandLine
  if (finish) {
    yield* table(yield* resumable(Organizations.finish(actor, organization)))
    return yield* Output.print(`Deleted ${organization}`)
  }
  yield* table(yield* resumable(Organizations.deleteAll(actor, organization)))
  if ((yield* Organizations.stateOf(organization)).hasRecords) {
    return yield* refused(
      `Records of ${organization} were added in the meantime. Stop its loader, and run the command again.`
    )
  }
  yield* Output.note([
    ...copies,
    `The API keys work until its readers are in step and you run: ${deleting} --finish --yes`
  ])
})

export const organizations = Command.make("organizations").pipe(
  Command.withDescription("Organizations"),
  Command.withSubcommands([list, create, rename, remove])
)

export const erase = command("erase", databases, {
  description: `Permanently erase a client of an organization: pets, subscriptions, payments, benefits, invoices, charges and all dependent records, and their items in deletion tasks. Erase the client in the source of the records first.

You can kill it at any point; run it again to resume. The audit log keeps the id of the client.`,
  examples: [
    ["practice-data erase --organization org_1 --client client_7", "Count the records"],
    ["practice-data erase --organization org_1 --client client_7 --yes"]
  ],
  flags: {
    organization: Operators.organization,
    client: Operators.line("client", "the id of a client", "Id of the client, as in `client_id` (required)"),
    yes
  }
})(function* ({ yes: isSure, ...client }) {
  yield* permitted
  if (!isSure) {
    const counts = yield* Effect.catchTag(Erasure.countRecords(client), "ManyRecords", () =>
      refused(`${client.client} has more than ${Erasure.mostCounted} records. Nothing was changed.`)
    )
    yield* table(counts)
    return yield* refused("Nothing was changed. Add --yes to erase these records.")
  }
  const erased = yield* resumable(Erasure.eraseClient(yield* Commands.commandLine, client))
  yield* table(erased)
  if (!Record.isEmptyRecord(erased)) yield* Output.note(copies)
})
