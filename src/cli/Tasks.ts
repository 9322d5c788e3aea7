/** Commands about the tasks that delete invoices. */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import * as TaskAdmin from "../deletions/TaskAdmin.ts"
import * as Organization from "./Organization.ts"
import { Refused } from "./Refused.ts"

const organization = Flag.optional(
  Organization.organization.pipe(Flag.withDescription("Only tasks of the organization with this id"))
)

const id = Argument.String("task-id").pipe(
  Argument.withDescription("Id of the task, as the intake returned it"),
  Argument.withSchema(Schema.String.check(Schema.isUUID()))
)

const readable = Schema.encodeEffect(Schema.fromJsonString(Schema.Unknown, { space: 2 }))

const identityOf = (given: { readonly id: string; readonly organization: Option.Option<string> }) => ({
  id: given.id,
  organization: Option.getOrUndefined(given.organization)
})

const notFound = (given: { readonly id: string; readonly organization: Option.Option<string> }) =>
  new Refused({
    message: `There is no task ${given.id}${Option.match(given.organization, { onNone: () => "", onSome: (owner) => ` of ${owner}` })}.`
  })

const listTasks = Command.make(
  "list",
  {
    state: Flag.optional(
      Flag.Literals("state", TaskAdmin.states).pipe(Flag.withDescription("Only tasks of this state"))
    ),
    organization,
    limit: Flag.Int("limit").pipe(
      Flag.withSchema(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 10_000 }))),
      Flag.withDescription("How many tasks at most, 50 by default"),
      Flag.withDefault(50)
    )
  },
  Effect.fn(function* (options) {
    const tasks = yield* TaskAdmin.list({
      state: Option.getOrUndefined(options.state),
      organization: Option.getOrUndefined(options.organization),
      limit: options.limit
    })
    yield* Console.table(tasks)
  })
).pipe(Command.withDescription("List deletion tasks, those that were scheduled for the latest time first"))

const showTask = Command.make(
  "show",
  { id, organization },
  Effect.fn(function* (given) {
    const task = yield* TaskAdmin.show(identityOf(given))
    if (task === undefined) return yield* notFound(given)
    yield* Console.log(yield* Effect.orDie(readable(task)))
  })
).pipe(Command.withDescription("Show everything about a deletion task, as JSON"))

const replayTask = Command.make(
  "replay",
  { id, organization },
  Effect.fn(function* (given) {
    const replay = yield* TaskAdmin.replay(identityOf(given))
    switch (replay._tag) {
      case "Replayed":
        return yield* Console.log(`Replaying ${given.id}`)
      case "NotDead":
        return yield* new Refused({
          message: `Task ${given.id} is ${replay.state}. Only a dead task can be replayed.`
        })
      case "NotFound":
        return yield* notFound(given)
    }
  })
).pipe(Command.withDescription("Run a dead deletion task again, at once and with all its attempts"))

/** `tasks`, over the task database. */
export const tasks = Command.make("tasks").pipe(
  Command.withDescription("Deletion tasks"),
  Command.withSubcommands([listTasks, showTask, replayTask])
)
