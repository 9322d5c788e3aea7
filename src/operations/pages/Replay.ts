/** `/ops/deletions/replay`: replays the dead deletions that have an organization, a reason or a time in common. */
import { Clock, DateTime, Effect } from "effect"
import { maximumAttempts } from "../../deletions/Task.ts"
import { type DeadFilter, longestReason, mostCounted } from "../../deletions/Tasks.ts"
import { h, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { filterForm } from "../Layout.ts"
import { mostReplayed, OperatorStore, Problem } from "../OperatorStore.ts"
import type { Query } from "../Page.ts"
import * as Change from "./Change.ts"

const place = "/ops/deletions"
const path = "/ops/deletions/replay"

const refused = (message: string) => new Problem({ status: 422, message })

/** A time as ISO 8601, of which UTC is the default zone. A text that is none would replay more than was meant. */
const timeOf = (text: string | undefined) =>
  text === undefined
    ? Effect.undefined
    : Effect.fromOption(DateTime.make(text), () => refused(`${text} is not a time such as 2026-11-23T09:30Z.`)).pipe(
        Effect.map(DateTime.formatIso)
      )

const filterOf = Effect.fnUntraced(function* (parameter: Query) {
  const reason = parameter("reason")
  if (reason !== undefined && reason.length > longestReason) {
    return yield* refused(`A reason has at most ${longestReason} characters.`)
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
  return { given, filter, count: yield* (yield* OperatorStore).countDead(filter) }
})

export const replay = Change.make({
  place,
  path,
  title: "Replay dead deletions",
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
    if (replayed === 0) {
      return yield* new Problem({ status: 409, message: "No dead deletion matches. Nothing was changed." })
    }
    return {
      text: `Replaying ${Format.counted(replayed, "deletion")}`,
      page: link(place, { state: "scheduled", organization: filter.organization })
    }
  })
})
