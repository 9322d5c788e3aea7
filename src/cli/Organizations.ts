/** `organizations`: lists and creates them. */
import { Layer } from "effect"
import { Argument, Command } from "effect/cli"
import * as Commands from "../operations/Commands.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { command, refused } from "./Usage.ts"

const list = command("organizations list", Layer.merge(Operators.tasks, Operators.keys), {
  description: "List organizations by id, with their numbers of valid API keys and signing secrets",
  examples: [["practice-data organizations list"], ["practice-data organizations list --limit 1000 --json"]],
  flags: { limit: Output.limit("organizations"), json: Output.json }
})(function* ({ json, limit }) {
  yield* Output.rows(json, yield* Commands.listOrganizations(limit), ["id", "name", "created_at", "keys", "secrets"])
})

const create = command("organizations create", Operators.tasks, {
  description: "Create an organization",
  examples: [["practice-data organizations create org_1 --name 'Happy Paws'", "Before its first API key"]],
  flags: {
    id: Argument.String("id").pipe(
      Argument.withSchema(Commands.Line("the id of an organization")),
      Argument.withDescription("Id of the organization, as in its records")
    ),
    name: Operators.line("name", "the name of the organization", "Name, as shown by its API (required)")
  }
})(function* (given) {
  if (!(yield* Commands.createOrganization(given))) {
    return yield* refused(`Organization ${given.id} already exists. Nothing was changed.`)
  }
  yield* Output.print(`Created ${given.id}`)
})

export const organizations = Command.make("organizations").pipe(
  Command.withDescription("Organizations"),
  Command.withSubcommands([list, create])
)
