/** The frame of the operators' pages, and the handlers of a page and of a list: they read in time, then show. */
import { Array, Effect, Record } from "effect"
import { type HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Content, document, h } from "../http/Html.ts"
import { version } from "../process/Package.ts"
import * as Time from "../process/Time.ts"
import { iso, utc } from "./Format.ts"
import { type Columns, type Filter, filterForm, table, unreadable } from "./Layout.ts"
import { type FirstRows, type OperatorStore, type Problem, problem } from "./OperatorStore.ts"

const navigation = {
  "/ops": "Overview",
  "/ops/deletions": "Deletions",
  "/ops/keys": "API keys",
  "/ops/secrets": "Signing secrets",
  "/ops/audit": "Audit log"
} as const

type Place = keyof typeof navigation

/** The content of a page at a time. */
type View = (now: number) => Content

const header = (place: Place) =>
  h("header")(
    h("p", { class: "brand" })(h("a", { href: "/ops" })("Practice Data ", h("span")("operations"))),
    h("nav", { "aria-label": "Pages" })(
      h("ul")(
        Object.entries(navigation).map(([path, name]) =>
          h("li")(h("a", { href: path, "aria-current": path === place && "page" })(name))
        )
      )
    )
  )

const respond = (place: Place, view: View, title: string = navigation[place], status = 200) =>
  Effect.map(Time.wall, (now) => {
    const made = h("time", { datetime: iso(now) })(utc(now))
    const html = document(
      `${title} · Practice Data operations`,
      h("link", { rel: "stylesheet", href: "/ops/style.css" })(),
      h("a", { class: "skip", href: "#main" })("Skip to the content"),
      header(place),
      h("main", { id: "main", tabindex: -1 })(h("h1")(title), view(now)),
      h("footer")(
        h("p")(`Version ${version}. As of `, made, ". All times are UTC. Commands change what is shown here.")
      )
    )
    // The other pages are read for longer.
    const response = HttpServerResponse.setStatus(HttpServerResponse.html(html), status)
    return place === "/ops" ? HttpServerResponse.setHeader(response, "refresh", "15") : response
  })

/** Leaves time for the rest of a page that responds within two seconds. */
const inTime = <A, R>(read: Effect.Effect<A, Problem, R>) =>
  Effect.timeoutOrElse(read, { duration: "1700 millis", orElse: () => problem(503, "No answer in time.") })

type RequestParameters = Readonly<Record<string, string | undefined>>

const wrongIn = (name: string, [value = "", ...more]: ReadonlyArray<string>, known: ReadonlyArray<string>) => {
  if (!known.includes(name)) return `Unknown parameter ${name}. Expected: ${known.join(", ")}.`
  if (more.length > 0) return `The parameter ${name} is repeated.`
  if (value.length > 2000 || value.includes("\0")) return `The parameter ${name} is too long, or contains U+0000.`
  return undefined
}

/** The parameters of the URL, without empty ones. Refuses wrong ones: without them, a list would show more than was meant. */
const requestParameters = Effect.fnUntraced(function* (known: ReadonlyArray<string>) {
  const given = Record.map(yield* HttpServerRequest.ParsedSearchParams, Array.ensure)
  const [wrong] = Object.entries(given).flatMap(([name, values]) => wrongIn(name, values, known) ?? [])
  if (wrong !== undefined) return yield* problem(422, wrong)
  const parameters: RequestParameters = Record.filter(
    Record.map(given, ([value = ""]) => value.trim()),
    (value) => value !== ""
  )
  return parameters
})

/** The route of a page, by default at its place. What is read is its view, with a title unless it has that of its place. */
export const page = <R>(
  place: Place,
  known: ReadonlyArray<string>,
  read: (parameters: RequestParameters) => Effect.Effect<View | { title: string; view: View }, Problem, R>,
  path: HttpRouter.PathInput = place
) => {
  const handler = inTime(Effect.flatMap(requestParameters(known), read)).pipe(
    Effect.flatMap((made) =>
      typeof made === "function" ? respond(place, made) : respond(place, made.view, made.title)
    ),
    Effect.catch(({ message, status }) => respond(place, () => unreadable(message), navigation[place], status))
  )
  return [path, handler] as const
}

interface List<Row> {
  readonly place: Place
  readonly filters: Readonly<Record<string, Filter>>
  readonly read: (parameters: RequestParameters) => Effect.Effect<FirstRows<Row>, Problem, OperatorStore>
  /** The content above the rows. */
  readonly above?: Effect.Effect<View, never, OperatorStore>
  readonly columns: (now: number) => Columns<Row>
}

/** The route of a list: its first rows, and a form that filters it. */
export const list = <Row>({ above, columns, filters, place, read }: List<Row>) =>
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
      const shownAbove = above === undefined ? undefined : yield* above
      return (now) => [
        shownAbove?.(now),
        filterForm(place, filters, parameters),
        isPartial && h("p", { class: "note warning" })("There are more. Narrow the list, or use the command line."),
        table<Row>({ caption: navigation[place], rows, columns: columns(now) })
      ]
    })
  )
