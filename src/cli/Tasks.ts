/** Commands about the tasks that delete invoices. */
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { State } from "../api/DeletionTasks.ts"
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

interface Given {
  readonly id: string
  readonly organization: Option.Option<string>
}

const identityOf = (given: Given) => ({ id: given.id, organization: Option.getOrUndefined(given.organization) })

const notFound = ({ id: taskId, organization: owner }: Given) =>
  new Refused({
    message: `There is no task ${taskId}${Option.match(owner, { onNone: () => "", onSome: (name) => ` of ${name}` })}.`
  })

const listTasks = Command.make(
  "list",
  {
    state: Flag.optional(Flag.Literals("state", State.literals).pipe(Flag.withDescription("Only tasks of this state"))),
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
    if (Option.isNone(task)) return yield* notFound(given)
    yield* Console.log(yield* Effect.orDie(readable(task.value)))
  })
).pipe(Command.withDescription("Show everything about a deletion task, as JSON"))

const replayTask = Command.make(
  "replay",
  { id, organization },
  Effect.fn(function* (given) {
    const replay = yield* TaskAdmin.replay(identityOf(given))
    yield* TaskAdmin.Replay.$match(replay, {
      Replayed: () => Console.log(`Replaying ${given.id}`),
      NotDead: ({ state }) =>
        Effect.fail(new Refused({ message: `Task ${given.id} is ${state}. Only a dead task can be replayed.` })),
      NotFound: () => Effect.fail(notFound(given))
    })
  })
).pipe(Command.withDescription("Run a dead deletion task again, at once and with all its attempts"))

/** `tasks`, over the task database. */
export const tasks = Command.make("tasks").pipe(
  Command.withDescription("Deletion tasks"),
  Command.withSubcommands([listTasks, showTask, replayTask])
)
