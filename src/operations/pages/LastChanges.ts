/** The section of `/ops` with the age of the last change of each resource, and the organizations that stopped. */
import { Effect, Result } from "effect"
import { resources } from "../../api/records/index.ts"
import { h, link } from "../../http/Html.ts"
import * as Format from "../Format.ts"
import { type Age, Freshness } from "../Freshness.ts"
import { filterForm, id, section as sectionOf, small, table, unreadable } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"

const ago = (age: Age | undefined) =>
  age === undefined ? "–" : `${age.isAtLeast ? "more than " : ""}${Format.span(age.seconds * 1000)} ago`

/** The section, with the last changes of an organization if one is named. */
export const section = Effect.fnUntraced(function* (organization: string | undefined) {
  const [{ last }, { lastChanges }] = [yield* Freshness, yield* OperatorStore]
  const report = yield* last
  const own = organization === undefined ? undefined : yield* Effect.result(lastChanges(organization))
  const ofOwn = own !== undefined && Result.isSuccess(own) ? own.success : undefined
  const stopped = table<Age & { readonly organization: string }>({
    caption: "Organizations that stopped while others go on",
    rows: report?.stopped ?? [],
    key: (one) => one.organization,
    columns: {
      "Stopped while others go on": (one) => id(one.organization, link("/ops", { organization: one.organization })),
      "Last change": ago
    }
  })
  return (now: number) =>
    sectionOf(
      "last-changes",
      "Last changes of records",
      report === undefined &&
        h("p", { class: "note" })(
          "Not known of all organizations: not read yet, without an answer in time, not a role of this process, or distributed over several servers."
        ),
      own !== undefined && Result.isFailure(own) && unreadable(`${organization}: ${own.failure.message}`),
      filterForm("/ops#last-changes", { organization: ["Organization"] }, { organization }),
      (report !== undefined || ofOwn !== undefined) &&
        table<(typeof resources)[number]>({
          caption: "Last change of each resource",
          rows: resources,
          columns: {
            Resource: ({ name }) => name,
            ...(report !== undefined && { "All organizations": ({ name }) => ago(report.resources[name]) }),
            ...(ofOwn !== undefined && { [`Of ${organization}`]: ({ name }) => ago(ofOwn[name]) })
          }
        }),
      report !== undefined && [
        report.stopped.length === 0 ? h("p")("No organization stopped while others go on.") : stopped,
        small(
          "All organizations were read ",
          Format.moment(report.at, now),
          ". Up to 20 organizations are listed: those that have records, and no change of any resource for more than 24 hours, for 10 times as long as all organizations together, and for less than 30 days."
        )
      ]
    )
})
