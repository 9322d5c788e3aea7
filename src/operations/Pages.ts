/** The routes of the operators' pages: each reads what it shows, in time, and shows what it could read. */
import { hash } from "node:crypto"
import { ByteSize, Clock, Effect, Option, Redacted, Result } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { State } from "../api/DeletionTasks.ts"
import type { ShownTask } from "../deletions/TaskPages.ts"
import { Replay } from "../deletions/Tasks.ts"
import * as Recent from "../observability/Recent.ts"
import { version } from "../process/Package.ts"
import { addressOf, type Credentials, credentialsOf, refusalOf } from "./Access.ts"
import { html, link } from "./Html.ts"
import * as Layout from "./Layout.ts"
import { script } from "./Live.ts"
import { OperatorStore, Unreadable } from "./OperatorStore.ts"
import * as Audit from "./pages/Audit.ts"
import * as Changes from "./pages/Changes.ts"
import * as Deletions from "./pages/Deletions.ts"
import * as Keys from "./pages/Keys.ts"
import * as Overview from "./pages/Overview.ts"
import * as Requests from "./pages/Requests.ts"
import * as Task from "./pages/Task.ts"
import { windowOf } from "./pages/Window.ts"
import { style } from "./Style.ts"
import { Token } from "./Token.ts"
import { type Seen, Watch } from "./Watch.ts"

/** A page is there within two seconds: what is not read by then is told to be missing. */
const within = "1700 millis"

const inTime = <A>(read: Effect.Effect<A, Unreadable>) =>
  read.pipe(
    Effect.timeoutOrElse({
      duration: within,
      orElse: () => Effect.fail(new Unreadable({ message: "There was no answer in time" }))
    }),
    Effect.result
  )

const asset = (type: string, content: string) => {
  const etag = `"${hash("sha256", content, "base64url")}"`
  const whole = HttpServerResponse.text(content, { contentType: type, headers: { etag } })
  const known = HttpServerResponse.empty({ status: 304, headers: { etag } })
  return Effect.map(HttpServerRequest.HttpServerRequest, ({ headers }) =>
    headers["if-none-match"] === etag ? known : whole
  )
}

const longestParameter = 2000

/** The parameters of a request: those that are there, and are a text that a database can hold. */
const parameters = Effect.map(HttpServerRequest.HttpServerRequest, ({ url }) => {
  const given = URL.parse(url, "http://localhost")?.searchParams
  return (name: string) => {
    const value = given?.get(name)?.trim()
    return value === undefined || value === "" || value.length > longestParameter || value.includes("\0")
      ? undefined
      : value
  }
})

interface Made extends Pick<Layout.Shown, "title" | "place" | "body"> {
  readonly now: number
  readonly isLive?: boolean
  readonly status?: number
}

const made = ({ isLive = true, status = 200, ...shown }: Made) =>
  HttpServerResponse.html(Layout.page({ ...shown, isLive, version }).text).pipe(HttpServerResponse.setStatus(status))

const recentOf = ({ processes }: Seen) => Recent.merge(processes.map(({ recent }) => recent))

const noTask = (now: number) =>
  made({
    title: "No such deletion",
    place: "/ops/deletions",
    now,
    isLive: false,
    status: 404,
    body: html`<p>There is no deletion with this id, or it is another organization's.</p>
      <p><a class="button" href="/ops/deletions">Deletions</a></p>`
  })

const unreadable = (title: string, now: number, { message }: Unreadable) =>
  made({ title, place: "/ops/deletions", now, status: 503, body: Layout.unreadable(message) })

/** The task that the parameters name, or the response that says why it is not shown. */
const taskOf = Effect.fnUntraced(function* (store: OperatorStore["Service"], now: number) {
  const parameter = yield* parameters
  const [organization, id] = [parameter("organization"), parameter("id")]
  if (organization === undefined || id === undefined) return Result.fail(noTask(now))
  const found = yield* inTime(store.task(organization, id))
  if (Result.isFailure(found)) return Result.fail(unreadable("Deletion", now, found.failure))
  return Option.match(found.success, {
    onNone: () => Result.fail(noTask(now)),
    onSome: (task) => Result.succeed(task)
  })
})

const longestName = 100

const confirmed = (task: ShownTask, now: number, name: string, problem: string | undefined, status = 200) =>
  made({
    title: "Replay this deletion?",
    place: "/ops/deletions",
    now,
    isLive: false,
    status,
    body: Task.confirmation({ task, name, problem })
  })

const form = Effect.map(HttpServerRequest.HttpServerRequest, (request) =>
  request.headers["content-type"]?.startsWith("application/x-www-form-urlencoded") === true
    ? Effect.provideService(request.text, HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(4))
    : Effect.succeed("")
).pipe(Effect.flatten)

/** Who asks for a change: as the form says, or as HTTP Basic does. */
const credentials = Effect.gen(function* () {
  const { headers } = yield* HttpServerRequest.HttpServerRequest
  const fields = new URLSearchParams(yield* Effect.orElseSucceed(form, () => ""))
  const token = fields.get("token")
  const given: Credentials | undefined =
    token === null ? credentialsOf(headers) : { name: fields.get("name") ?? "", token: Redacted.make(token) }
  return given === undefined
    ? undefined
    : {
        token: given.token,
        name: given.name
          .replaceAll(/[\p{Cc}\s]+/gu, " ")
          .trim()
          .slice(0, longestName)
          .toWellFormed()
      }
})

/** The routes. */
export const layer = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const watch = yield* Watch
    const store = yield* OperatorStore
    const token = yield* Token

    const overview = Effect.gen(function* () {
      const parameter = yield* parameters
      const [seen, counts] = yield* Effect.all([watch.look, inTime(store.taskCounts)], { concurrency: 2 })
      const now = yield* Clock.currentTimeMillis
      const window = windowOf(parameter("window"))
      const body = Overview.body({ now, seen, counts, window, recent: recentOf(seen) })
      return made({ title: "Overview", place: "/ops", now, body })
    })

    const requests = Effect.gen(function* () {
      const parameter = yield* parameters
      const recent = recentOf(yield* watch.look)
      const now = yield* Clock.currentTimeMillis
      const window = windowOf(parameter("window"))
      const body = Requests.body({ now, recent, window, order: Requests.orderOf(parameter("sort")) })
      return made({ title: "Requests", place: "/ops/requests", now, body })
    })

    const deletions = Effect.gen(function* () {
      const parameter = yield* parameters
      const filter = {
        state: State.literals.find((state) => state === parameter("state")),
        organization: parameter("organization")
      }
      const [search, after] = [parameter("q"), parameter("after")]
      const list = search === undefined ? store.tasks(filter, after) : store.findTasks(search, filter.organization)
      const [counts, page] = yield* Effect.all([inTime(store.taskCounts), inTime(list)], { concurrency: 2 })
      const now = yield* Clock.currentTimeMillis
      const body = Deletions.body({ now, filter, search, counts, page, isContinued: after !== undefined })
      return made({ title: "Deletions", place: "/ops/deletions", now, body })
    })

    const task = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const found = yield* taskOf(store, now)
      if (Result.isFailure(found)) return found.failure
      const { organization_id, id, idempotency_key } = found.success
      const history = yield* inTime(store.history(organization_id, id))
      const body = Task.body({ now, task: found.success, history, hasToken: token.isSet })
      return made({ title: `Deletion ${idempotency_key}`, place: "/ops/deletions", now, body })
    })

    const confirm = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const found = yield* taskOf(store, now)
      if (Result.isFailure(found)) return found.failure
      if (found.success.state !== "dead") {
        return HttpServerResponse.redirect(Deletions.linkTo(found.success), { status: 303 })
      }
      const { headers } = yield* HttpServerRequest.HttpServerRequest
      return confirmed(found.success, now, credentialsOf(headers)?.name ?? "", undefined)
    })

    const replay = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const request = yield* HttpServerRequest.HttpServerRequest
      const given = yield* credentials
      if (given === undefined) {
        return HttpServerResponse.setStatus(
          HttpServerResponse.text("Send the operators' token, by HTTP Basic or in the form.\n"),
          token.isSet ? 401 : 403
        )
      }
      const isForm = request.headers["accept"]?.includes("text/html") === true
      const checked = yield* Effect.result(token.check(given.token, addressOf(request)))
      if (Result.isFailure(checked) && (!isForm || checked.failure._tag === "NotSet")) return refusalOf(checked.failure)
      const found = yield* taskOf(store, now)
      if (Result.isFailure(found)) return found.failure
      const undone = (status: number, problem: string) =>
        isForm
          ? confirmed(found.success, now, given.name, problem, status)
          : HttpServerResponse.text(`${problem}\n`, { status })
      if (Result.isFailure(checked)) {
        return checked.failure._tag === "TooMany"
          ? undone(429, `Too many wrong tokens. Try again in ${checked.failure.retryAfter} seconds.`)
          : undone(403, "This is not the operators' token. Nothing was changed.")
      }
      if (given.name === "") return undone(422, "Give a name, for the audit log. Nothing was changed.")
      const { id, organization_id } = found.success
      const actor = { name: given.name, source: addressOf(request) }
      const done = yield* Effect.result(store.replay(actor, organization_id, id))
      if (Result.isFailure(done)) return undone(503, `${done.failure.message}.`)
      return Replay.$match(done.success, {
        Replayed: () =>
          isForm
            ? HttpServerResponse.redirect(link("/ops/replayed", { organization: organization_id, id }), { status: 303 })
            : HttpServerResponse.text(`Replaying ${id}\n`),
        NotDead: ({ state }) => undone(409, `This deletion is ${state}. Only a dead one can be replayed.`),
        NotFound: () => noTask(now)
      })
    })

    const replayed = Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      const parameter = yield* parameters
      const [organization_id, id] = [parameter("organization") ?? "", parameter("id") ?? ""]
      const body = Task.replayed({ organization_id, id })
      return made({ title: "Replayed", place: "/ops/deletions", now, isLive: false, body })
    })

    const keys = Effect.gen(function* () {
      const parameter = yield* parameters
      const organization = parameter("organization")
      const page = yield* inTime(store.keys(organization, parameter("after")))
      const now = yield* Clock.currentTimeMillis
      return made({ title: "API keys", place: "/ops/keys", now, body: Keys.body({ now, organization, page }) })
    })

    const changes = Effect.gen(function* () {
      const [seen, holders] = yield* Effect.all([watch.look, inTime(store.holders)], { concurrency: 2 })
      const now = yield* Clock.currentTimeMillis
      return made({ title: "Changes", place: "/ops/changes", now, body: Changes.body({ now, seen, holders }) })
    })

    const audit = Effect.gen(function* () {
      const parameter = yield* parameters
      const after = parameter("after")
      const page = yield* inTime(store.audit(after))
      const now = yield* Clock.currentTimeMillis
      const body = Audit.body({ now, page, isContinued: after !== undefined })
      return made({ title: "Audit log", place: "/ops/audit", now, body })
    })

    yield* router.addAll([
      HttpRouter.route("GET", "/", Effect.succeed(HttpServerResponse.redirect("/ops", { status: 303 }))),
      HttpRouter.route("GET", "/ops", overview),
      HttpRouter.route("GET", "/ops/requests", requests),
      HttpRouter.route("GET", "/ops/deletions", deletions),
      HttpRouter.route("GET", "/ops/task", task),
      HttpRouter.route("GET", "/ops/task/replay", confirm),
      HttpRouter.route("POST", "/ops/task/replay", replay),
      HttpRouter.route("GET", "/ops/replayed", replayed),
      HttpRouter.route("GET", "/ops/keys", keys),
      HttpRouter.route("GET", "/ops/changes", changes),
      HttpRouter.route("GET", "/ops/audit", audit),
      HttpRouter.route("GET", "/ops/style.css", asset("text/css; charset=utf-8", style)),
      HttpRouter.route("GET", "/ops/live.js", asset("text/javascript; charset=utf-8", script))
    ])
  })
)
