/** `organizations`: the records of the organizations themselves, which other systems may write as well. */
import { Effect } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as Commands from "../operations/Commands.ts"
import * as Operators from "./Operators.ts"
import * as Output from "./Output.ts"
import { documented, Refused } from "./Usage.ts"

const create = Command.make(
  "create",
  {
    id: Argument.String("id").pipe(
      Argument.withSchema(Commands.Line("the id of an organization")),
      Argument.withDescription("Id of the organization, as its records have it")
    ),
    name: Flag.String("name").pipe(
      Flag.withSchema(Commands.Line("the name of the organization")),
      Flag.withDescription("Its name, which its API shows (required)")
    )
  },
  Effect.fn(function* (given) {
    if (!(yield* Commands.createOrganization(yield* Commands.commandLine, given))) {
      return yield* new Refused({ message: `There is an organization ${given.id} already. Nothing is changed.` })
    }
    yield* Output.print(`Created ${given.id}`)
  })
).pipe(
  documented("Create the record of an organization", [
    ["practice-data organizations create org_1 --name 'Happy Paws'", "Before its first API key"]
  ]),
  Command.provide(Operators.tasks)
)

export const organizations = Command.make("organizations").pipe(
  Command.withDescription("Organizations"),
  Command.withSubcommands([create])
)
