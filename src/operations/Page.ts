/** The frame of the operators' pages, and the handlers of a page and of a list: they read in time, then show. */
import { Array, Effect, Record } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Content, document, h } from "../http/Html.ts"
import { version } from "../process/Package.ts"
import * as Time from "../process/Time.ts"
import { iso, utc } from "./Format.ts"
import { type Columns, type Filter, filterForm, table, unreadable } from "./Layout.ts"
import { type FirstRows, type OperatorStore, type Problem, problem } from "./OperatorStore.ts"

const navigation = {
  "/ops": "Overview",
  "/ops/requests": "Requests",
  "/ops/deletions": "Deletions",
  "/ops/keys": "API keys",
  "/ops/secrets": "Signing secrets",
  "/ops/audit": "Audit log",
  "/ops/runbook": "Runbook",
  "/ops/guide": "Guide"
} as const

export type Place = keyof typeof navigation

/** The content of a page at a time. */
export type View = (now: number) => Content

interface PageContent {
  /** The current entry of the navigation. */
  readonly place: Place
  readonly title?: string
  readonly view: View
  /** Updates itself: not with a form to fill in. */
  readonly isLive?: boolean
  readonly status?: number
}

const live = [
  h("noscript")(h("meta", { "http-equiv": "refresh", content: 15 })()),
  h("script", { src: "/ops/live.js", defer: true })()
]

const header = (place: Place) =>
  h("header")(
    h("p", { class: "brand" })(h("a", { href: "/ops" })("Practice Data ", h("span")("operations"))),
    h("nav", { "aria-label": "Pages" })(
      h("ul")(
        Object.entries(navigation).map(([path, name]) =>
          h("li")(h("a", { href: path, "aria-current": path === place && "page" })(name))
        )
      )
    ),
    h("div", { id: "live", hidden: true })(
      h("p")(h("span", { id: "live-state", role: "status" })(), " ", h("span", { id: "live-time" })()),
      h("button", { type: "button", id: "live-pause", "aria-pressed": "false" })("Pause")
    )
  )

export const respond = ({ isLive = true, place, status = 200, title = navigation[place], view }: PageContent) =>
  Effect.map(Time.wall, (now) => {
    const made = h("time", { datetime: iso(now) })(utc(now))
    const html = document(
      `${title} · Practice Data operations`,
      [
        h("link", { rel: "stylesheet", href: "/ops/style.css" })(),
        isLive ? live : h("script", { src: "/ops/once.js" })()
      ],
      h("a", { class: "skip", href: "#main" })("Skip to the content"),
      header(place),
      h("main", { id: "main", tabindex: -1 })(h("h1")(title), view(now)),
      h("footer")(h("p")(`Version ${version}. As of `, made, ". All times are UTC."))
    )
    return HttpServerResponse.setStatus(HttpServerResponse.html(html), status)
  })

/** Leaves time for the rest of a page that responds within two seconds. */
export const inTime = <A, R>(read: Effect.Effect<A, Problem, R>) =>
  Effect.timeoutOrElse(read, { duration: "1700 millis", orElse: () => problem(503, "No answer in time.") })

export const showProblem =
  (frame: Omit<PageContent, "view">) =>
  ({ message, status }: Problem) =>
    // To ask again changes nothing about a request that is not understood.
    respond({ isLive: status !== 422, ...frame, status, view: () => unreadable(message) })

export type RequestParameters = Readonly<Record<string, string | undefined>>

type Given = Readonly<Record<string, string | ReadonlyArray<string>>>

const wrongIn = (name: string, [value = "", ...more]: ReadonlyArray<string>, known: ReadonlyArray<string>) => {
  if (!known.includes(name)) return `Unknown parameter ${name}. Expected: ${known.join(", ")}.`
  if (more.length > 0) return `The parameter ${name} is repeated.`
  if (value.length > 2000 || value.includes("\0")) return `The parameter ${name} is too long, or contains U+0000.`
  return undefined
}

/** Leaves out empty parameters. Refuses wrong ones: without them, a list shows more and a change does more than was meant. */
export const understood = (given: Given, known: ReadonlyArray<string>): Effect.Effect<RequestParameters, Problem> => {
  const all = Record.map(given, Array.ensure)
  const wrong = Object.entries(all).flatMap(([name, values]) => wrongIn(name, values, known) ?? [])
  if (wrong[0] !== undefined) return problem(422, wrong[0])
  return Effect.succeed(
    Record.filter(
      Record.map(all, ([value = ""]) => value.trim()),
      (value) => value !== ""
    )
  )
}

export const parametersInUrl = (known: ReadonlyArray<string>) =>
  Effect.flatMap(HttpServerRequest.ParsedSearchParams, (given) => understood(given, known))

export const page = <R>(
  place: Place,
  known: ReadonlyArray<string>,
  read: (parameters: RequestParameters) => Effect.Effect<View | Pick<PageContent, "title" | "view">, Problem, R>,
  path: Place | "/ops/task" = place
) => {
  const handler = inTime(Effect.flatMap(parametersInUrl(known), read)).pipe(
    Effect.flatMap((content) => respond({ place, ...(typeof content === "function" ? { view: content } : content) })),
    Effect.catch(showProblem({ place }))
  )
  return ["GET", path, handler] as const
}

type Identified = Readonly<Record<"organization_id" | "id", string>>

export const parametersOf = ({ id, organization_id: organization }: Identified) => ({ organization, id })

const keyOf = ({ id, organization_id }: Identified) => `${organization_id} ${id}`

interface List<Row> {
  readonly place: Place
  readonly filters: Readonly<Record<string, Filter>>
  readonly read: (parameters: RequestParameters) => Effect.Effect<FirstRows<Row>, Problem, OperatorStore>
  readonly above?: (parameters: RequestParameters) => Content
  readonly columns: (now: number) => Columns<Row>
}

/** The route of a list: its first rows, and a form that filters it. */
export const list = <Row extends Identified>({ above, columns, filters, place, read }: List<Row>) =>
  page(
    place,
    Object.keys(filters),
    Effect.fnUntraced(function* (parameters) {
      for (const [name, [, ...values]] of Object.entries(filters)) {
        const value = parameters[name]
        if (value === undefined || values.length === 0 || values.includes(value)) continue
        return yield* problem(422, `Unknown ${name} ${value}. Expected: ${values.join(", ")}.`)
      }
      const { isPartial, rows } = yield* read(parameters)
      return (now) => [
        filterForm(place, filters, parameters),
        above?.(parameters),
        isPartial && h("p", { class: "note warning" })("There are more. Narrow the list, or use the command line."),
        table<Row>({ caption: navigation[place], rows, key: keyOf, columns: columns(now) })
      ]
    })
  )
