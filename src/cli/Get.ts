/** `get`. */
import { Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { invocation } from "../process/Package.ts"
import { ask, clientOf, connection } from "./Connection.ts"
import * as Output from "./Output.ts"
import * as RecordText from "./RecordText.ts"
import { resource } from "./Resources.ts"
import { misused } from "./Usage.ts"

const organization = "organization"
const deletions = "invoice-deletions"

interface Given {
  readonly resource: string
  readonly id: Option.Option<string>
  readonly idempotencyKey: Option.Option<string>
}

/** What the API is asked for. */
const keyOf = Effect.fnUntraced(function* ({ id, idempotencyKey, resource: name }: Given) {
  if (Option.isSome(idempotencyKey)) {
    return name === deletions && Option.isNone(id)
      ? { idempotency_key: idempotencyKey.value }
      : yield* misused(["get"], `--idempotency-key is for ${deletions}, instead of an id.`)
  }
  if (name === organization) {
    return Option.isNone(id) ? {} : yield* misused(["get"], "organization takes no id: it is that of the API key.")
  }
  return Option.isSome(id) ? id.value : yield* misused(["get"], `Give the id of the record: get ${name} ID.`)
})

/** Reads one record. */
export const get = Command.make(
  "get",
  {
    resource: resource("get"),
    id: Argument.String("id").pipe(
      Argument.withDescription("Id of the record; none for organization"),
      Argument.optional
    ),
    idempotencyKey: Flag.String("idempotency-key").pipe(
      Flag.withDescription(`Of ${deletions}, instead of the id: the Idempotency-Key of the delivery`),
      Flag.optional
    ),
    ...connection,
    json: Output.json
  },
  Effect.fn(function* (given) {
    const key = yield* keyOf(given)
    const client = yield* clientOf(["get"], given)
    const { get: read } = client.resource(given.resource)
    const record = yield* ask((signal) => read?.(key, { signal }) ?? Promise.resolve({}))
    if (given.json) return yield* Output.record(record)
    yield* Output.print(RecordText.linesOf(record))
  })
).pipe(
  Command.withDescription("Read one record of the organization that the API key belongs to. Times are in UTC."),
  Command.withShortDescription("Read one record"),
  Command.withExamples([
    { command: `PRACTICE_DATA_API_KEY=pda_demo_oakridge ${invocation("get charges charge_oakridge_0001")}` },
    { command: invocation("get organization --json") },
    { command: invocation("get invoice-deletions --idempotency-key delivery-1") }
  ])
)
