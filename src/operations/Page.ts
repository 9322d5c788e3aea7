/** The frame of the operators' pages, and the handlers of a page and of a list: they read in time, then show. */
import { type Context, Duration, Effect, Record, Schema } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import type { SqlError } from "effect/sql/SqlError"
import { CredentialDatabase, type Database, TaskDatabase } from "../database/Database.ts"
import { describe } from "../database/SqlFailure.ts"
import { type Content, document, h } from "../http/Html.ts"
import { version } from "../process/Package.ts"
import * as Time from "../observability/Time.ts"
import { iso, utc } from "./Format.ts"
import { type Columns, type Filter, filterForm, table, unreadable } from "./Layout.ts"

/** A read that failed, as the status of its response and a sentence for a person. */
export class Problem extends Schema.TaggedError<Problem>()("Problem", { status: Schema.Int, message: Schema.String }) {}

export const problem = (status: number, message: string) => new Problem({ status, message })

/** Makes reads of a store, in their turn and in time. */
const reader =
  <I>(key: Context.Key<I, Database>, store: string) =>
  <A, R>(statements: Effect.Effect<A, SqlError, R>): Effect.Effect<A, Problem, I | R> =>
    Effect.flatMap(key, (database) =>
      database.run(
        {
          key: "operators",
          within: Duration.millis(1500),
          unavailable: (failure) => problem(503, `The ${store} store ${describe(failure)}.`)
        },
        statements
      )
    )

export const readTasks = reader(TaskDatabase, "task")
export const readKeys = reader(CredentialDatabase, "credential")
export const readBoth = reader(TaskDatabase, "task or credential")

/** The most rows of a list. One more is read, which shows that there are more. */
export const mostRows = 100

const navigation = {
  "/ops": "Overview",
  "/ops/deletions": "Deletions",
  "/ops/keys": "API keys",
  "/ops/secrets": "Signing secrets",
  "/ops/audit": "Audit log"
} as const

type Place = keyof typeof navigation

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

/** The content of a page, with a title unless it has that of its place. */
interface Shown {
  readonly title?: string
  readonly content: Content
}

const respond = (place: Place, now: number, { content, title = navigation[place] }: Shown, status = 200) => {
  const made = h("time", { datetime: iso(now) })(utc(now))
  const html = document(
    `${title} · Practice Data operations`,
    h("link", { rel: "stylesheet", href: "/ops/style.css" })(),
    h("a", { class: "skip", href: "#main" })("Skip to the content"),
    header(place),
    h("main", { id: "main", tabindex: -1 })(h("h1")(title), content),
    h("footer")(h("p")(`Version ${version}. As of `, made, ". All times are UTC. Commands change what is shown here."))
  )
  // The other pages are read for longer.
  const headers = place === "/ops" ? { refresh: "15" } : {}
  return HttpServerResponse.setHeaders(HttpServerResponse.html(html), headers).pipe(
    HttpServerResponse.setStatus(status)
  )
}

type Filters = Readonly<Record<string, Filter>>

type RequestParameters = Readonly<Record<string, string | undefined>>

const text = Schema.Trim.check(Schema.isMaxLength(2000), Schema.isPattern(/^[^\0]*$/))

/** The parameters of the URL, without empty ones. Refuses wrong ones: without them, a list would show more than was meant. */
const requestParameters = (filters: Filters) => {
  const fields = Record.map(filters, ([, ...values]) =>
    Schema.optionalKey<Schema.Codec<string>>(values.length === 0 ? text : Schema.Literals(["", ...values]))
  )
  return HttpServerRequest.schemaSearchParams(Schema.Struct(fields), { onExcessProperty: "error" }).pipe(
    Effect.mapError(({ message }) => problem(422, message)),
    Effect.map((given): RequestParameters => Record.filter(given, (value) => value !== ""))
  )
}

/** The route of a page, by default at its place. It responds within two seconds. */
export const page = <R>(
  place: Place,
  filters: Filters,
  read: (parameters: RequestParameters, now: number) => Effect.Effect<Shown, Problem, R>,
  path: HttpRouter.PathInput = place
) => {
  const handler = Effect.gen(function* () {
    const now = yield* Time.wall
    return yield* Effect.flatMap(requestParameters(filters), (parameters) => read(parameters, now)).pipe(
      Effect.timeoutOrElse({ duration: "1700 millis", orElse: () => problem(503, "No answer in time.") }),
      Effect.match({
        onSuccess: (shown) => respond(place, now, shown),
        onFailure: ({ message, status }) => respond(place, now, { content: unreadable(message) }, status)
      })
    )
  })
  return HttpRouter.route("GET", path, handler)
}

type Stores = TaskDatabase | CredentialDatabase

interface List<Row> {
  readonly place: Place
  readonly filters: Filters
  readonly read: (parameters: RequestParameters, limit: number) => Effect.Effect<ReadonlyArray<Row>, Problem, Stores>
  /** The content above the rows. */
  readonly above?: (now: number) => Effect.Effect<Content, never, Stores>
  readonly columns: (now: number) => Columns<Row>
}

/** The route of a list: its first rows, and a form that filters it. */
export const list = <Row>({ above, columns, filters, place, read }: List<Row>) =>
  page(
    place,
    filters,
    Effect.fnUntraced(function* (parameters, now) {
      const rows = yield* read(parameters, mostRows + 1)
      const content = [
        above && (yield* above(now)),
        filterForm(place, filters, parameters),
        rows.length > mostRows &&
          h("p", { class: "note warning" })("There are more. Narrow the list, or use the command line."),
        table({ caption: navigation[place], rows: rows.slice(0, mostRows), columns: columns(now) })
      ]
      return { content }
    })
  )
