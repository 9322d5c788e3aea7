/** `/ops/task/replay`: the replay of a dead task, with the operators' token, and its confirmation before. */
import { ByteSize, Clock, Effect, Option, Redacted, Result, Schema } from "effect"
import { HttpIncomingMessage, HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { maximumAttempts } from "../../deletions/Task.ts"
import type { ShownTask } from "../../deletions/TaskPages.ts"
import { Replay } from "../../deletions/Tasks.ts"
import { h } from "../../http/Html.ts"
import { addressOf, credentialsOf, refusalOf, Token } from "../Access.ts"
import { button, clamped, pairs } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import { respond } from "../Page.ts"
import { linkTo } from "./Deletions.ts"
import { identity, notFound, place, replayLink, requested, show } from "./Task.ts"

type Response = HttpServerResponse.HttpServerResponse

const field = (name: string, label: string, attributes: Parameters<typeof h>[1]) =>
  h("div")(h("label", { for: name })(label), h("input", { id: name, name, required: true, ...attributes })())

/** The form that confirms a replay, with the name and the problem of the last try. */
const confirmation = (task: ShownTask, now: number, name: string, problem?: string, status = 200) =>
  respond({
    title: "Replay this deletion?",
    place,
    now,
    isLive: false,
    status,
    body: [
      problem !== undefined && h("p", { class: "note problem", role: "alert" })(problem),
      pairs({ ...identity(task), "Last error": clamped(task.last_error ?? "none") }),
      h("p")(
        `The task becomes due now, with ${maximumAttempts} new attempts, and deletes its items.`,
        " The replay is written to the audit log."
      ),
      h("form", { class: "confirm", method: "post", action: replayLink(task), autocomplete: "off" })(
        field("name", "Your name, for the audit log", { value: name, maxlength: 100 }),
        field("token", "Operators' token (OPERATIONS_TOKEN)", { type: "password", maxlength: 255 }),
        h("p", { class: "actions" })(
          h("button", { class: "main" })("Replay this deletion"),
          button("Cancel", linkTo(task))
        )
      )
    ]
  })

const confirm = Effect.gen(function* () {
  const task = yield* requested
  if (task.state !== "dead") return HttpServerResponse.redirect(linkTo(task), { status: 303 })
  const name = credentialsOf(yield* HttpServerRequest.HttpServerRequest)?.name ?? ""
  return confirmation(task, yield* Clock.currentTimeMillis, name)
})

const Form = Schema.Struct({ name: Schema.optional(Schema.String), token: Schema.String })

/** The credentials of the form; without one, those of HTTP Basic. */
const credentials = Effect.gen(function* () {
  const form = yield* HttpServerRequest.schemaBodyUrlParams(Form).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(4)),
    Effect.option
  )
  const given = Option.isSome(form)
    ? { name: form.value.name ?? "", token: Redacted.make(form.value.token) }
    : credentialsOf(yield* HttpServerRequest.HttpServerRequest)
  if (given === undefined) return undefined
  const name = given.name.replaceAll(/[\p{Cc}\s]+/gu, " ").trim()
  return { ...given, name: name.slice(0, 100).toWellFormed() }
})

const replay = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const store = yield* OperatorStore
  const token = yield* Token
  const isForm = request.headers["accept"]?.includes("text/html") === true
  const given = yield* credentials
  if (given === undefined) {
    const text = "Send the operators' token with HTTP Basic or in the form.\n"
    return HttpServerResponse.text(text, { status: token.isSet ? 401 : 403 })
  }
  const source = addressOf(request)
  const checked = yield* Effect.result(token.check(given.token, source))
  if (Result.isFailure(checked) && (!isForm || checked.failure._tag === "NotSet")) return refusalOf(checked.failure)
  const task = yield* requested
  const now = yield* Clock.currentTimeMillis
  const unchanged = (status: number, problem: string) =>
    isForm ? confirmation(task, now, given.name, problem, status) : HttpServerResponse.text(`${problem}\n`, { status })
  if (Result.isFailure(checked)) {
    return checked.failure._tag === "TooMany"
      ? unchanged(429, `Too many wrong tokens. Try again in ${checked.failure.retryAfter} seconds.`)
      : unchanged(403, "Wrong token. Nothing was changed.")
  }
  if (given.name === "") return unchanged(422, "Enter your name for the audit log. Nothing was changed.")
  const done = yield* Effect.result(store.replay({ name: given.name, source }, task.organization_id, task.id))
  if (Result.isFailure(done)) return unchanged(503, `${done.failure.message}.`)
  return Replay.$match(done.success, {
    Replayed: () =>
      isForm
        ? HttpServerResponse.redirect(`${linkTo(task)}&replayed=1`, { status: 303 })
        : HttpServerResponse.text(`Replaying ${task.id}\n`),
    NotDead: ({ state }) => unchanged(409, `This deletion is ${state}. Only a dead one can be replayed.`),
    NotFound: () => notFound(now)
  })
})

/** The routes of a task and its replay. */
export const routes = Effect.map(Effect.context<OperatorStore | Token>(), (services) => {
  const handled = <R>(handler: Effect.Effect<Response, Response, R | OperatorStore | Token>) =>
    Effect.provideContext(Effect.catch(handler, Effect.succeed), services)
  return [
    HttpRouter.route("GET", "/ops/task", handled(show)),
    HttpRouter.route("GET", "/ops/task/replay", handled(confirm)),
    HttpRouter.route("POST", "/ops/task/replay", handled(replay))
  ]
})
