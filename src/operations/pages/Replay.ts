/** `/ops/deletions/replay`: replays the dead deletions that have an organization, a reason or a time in common. */
import { Clock, DateTime, Effect, Option } from "effect"
import { maximumAttempts } from "../../deletions/Task.ts"
import { type DeadFilter, longestReason, mostCounted } from "../../deletions/Tasks.ts"
import { h, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { filterForm } from "../Layout.ts"
import { mostReplayed, OperatorStore } from "../OperatorStore.ts"
import { type Query, readOrRefuse, refuse } from "../Page.ts"
import * as Change from "./Change.ts"

const place = "/ops/deletions"
const path = "/ops/deletions/replay"
const title = "Replay dead deletions"

const refused = (message: string) => refuse({ title, place, status: 422 }, message)

/** A time as ISO 8601, of which UTC is the default zone. A text that is none would replay more than was meant. */
const timeOf = (text: string | undefined) =>
  text === undefined
    ? Effect.undefined
    : Option.match(DateTime.make(text), {
        onNone: () => refused(`${text} is not a time such as 2026-11-23T09:30Z`),
        onSome: (time) => Effect.succeed(DateTime.formatIso(time))
      })

const filterOf = Effect.fnUntraced(function* (parameter: Query) {
  const reason = parameter("reason")
  if (reason !== undefined && reason.length > longestReason) {
    return yield* refused(`A reason has at most ${longestReason} characters`)
  }
  const [since, before] = [yield* timeOf(parameter("since")), yield* timeOf(parameter("before"))]
  return { organization: parameter("organization"), reason, since, before }
})

const fields = ({ before, organization, reason, since }: DeadFilter) =>
  [
    ["reason", "Text in the last error", reason],
    ["organization", "Organization", organization],
    ["since", "Died since (UTC)", since],
    ["before", "Died before (UTC)", before]
  ] as const

/** The dead tasks that the parameters describe. */
const chosen = Effect.fnUntraced(function* (parameter: Query) {
  const given = yield* filterOf(parameter)
  // A task that dies while the operator decides is left alone. Postgres counts the microseconds of this millisecond.
  const filter = { ...given, before: given.before ?? Format.iso((yield* Clock.currentTimeMillis) + 1) }
  const count = yield* readOrRefuse({ title, place }, (yield* OperatorStore).countDead(filter))
  return { given, filter, count }
})

export const replay = Change.make({
  place,
  path,
  title,
  subject: chosen,
  about: ({ count, given }) => [
    filterForm(path, fields(given), path),
    h("p")(
      h("strong")(Format.count(count, mostCounted)),
      ` dead ${count === 1 ? "deletion matches" : "deletions match"}.`,
      count > mostReplayed && ` At most ${Format.count(mostReplayed)} are replayed at once, the first to die first.`,
      ` They become due now, with ${maximumAttempts} new attempts. The replay is written to the audit log.`
    )
  ],
  hidden: ({ filter }) => ({ ...filter }),
  button: "Replay these deletions",
  cancel: ({ given: { organization } }) => link(place, { state: "dead", organization }),
  make: Effect.fnUntraced(function* (actor, { filter }) {
    const replayed = yield* (yield* OperatorStore).replayDead(actor, filter)
    return replayed === 0
      ? Change.Made.Unchanged({ status: 409, problem: "No dead deletion matches. Nothing was changed." })
      : Change.Made.Led({
          to: link(place, { state: "scheduled", organization: filter.organization }),
          text: `Replaying ${Format.counted(replayed, "deletion")}`
        })
  })
})
