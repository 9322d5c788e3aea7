/** `/ops/task/replay`: the replay of a dead task, with the operators' token, and its confirmation before. */
import { ByteSize, Effect, Option, Redacted, Result, Schema } from "effect"
import { HttpIncomingMessage, HttpServerRequest, HttpServerResponse } from "effect/http"
import { maximumAttempts } from "../../deletions/Task.ts"
import type { ShownTask } from "../../deletions/TaskPages.ts"
import { Replay } from "../../deletions/Tasks.ts"
import { h } from "../../http/Html.ts"
import { addressOf, credentials as ofBasic, refusalOf, Token } from "../Access.ts"
import { button, clamped, field, pairs } from "../Layout.ts"
import { OperatorStore } from "../OperatorStore.ts"
import { respond } from "../Page.ts"
import { linkTo } from "./Deletions.ts"
import { identity, notFound, place, replayLink, requested } from "./Task.ts"

const redirect = (to: string) => HttpServerResponse.redirect(to, { status: 303 })
const text = (line: string, status = 200) => HttpServerResponse.text(`${line}\n`, { status })

/** The form that confirms a replay, with the name and the problem of the last try. */
const confirmation = (task: ShownTask, name: string, problem?: string, status = 200) =>
  respond({
    title: "Replay this deletion?",
    place,
    isLive: false,
    status,
    view: () => [
      problem !== undefined && h("p", { class: "note problem", role: "alert" })(problem),
      pairs({ ...identity(task), "Last error": clamped(task.last_error ?? "none") }),
      h("p")(
        `The task becomes due now, with ${maximumAttempts} new attempts, and deletes its items.`,
        " The replay is written to the audit log."
      ),
      h("form", { class: "confirm", method: "post", action: replayLink(task), autocomplete: "off" })(
        field("name", "Your name, for the audit log", { required: true, value: name, maxlength: 100 }),
        field("token", "Operators' token (OPERATIONS_TOKEN)", { required: true, type: "password", maxlength: 255 }),
        h("p", { class: "actions" })(
          h("button", { class: "main" })("Replay this deletion"),
          button("Cancel", linkTo(task))
        )
      )
    ]
  })

export const confirm = Effect.gen(function* () {
  const task = yield* requested
  if (task.state !== "dead") return redirect(linkTo(task))
  return yield* confirmation(task, (yield* ofBasic)?.name ?? "")
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
    : yield* ofBasic
  if (given === undefined) return undefined
  const name = given.name.replaceAll(/[\p{Cc}\s]+/gu, " ").trim()
  return { ...given, name: name.slice(0, 100).toWellFormed() }
})

export const replay = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const token = yield* Token
  const isForm = request.headers["accept"]?.includes("text/html") === true
  const given = yield* credentials
  if (given === undefined) {
    return text("Send the operators' token with HTTP Basic or in the form.", token.isSet ? 401 : 403)
  }
  const { name } = given
  const source = addressOf(request)
  const checked = yield* Effect.result(token.check(given.token, source))
  if (Result.isFailure(checked) && (!isForm || checked.failure._tag === "NotSet")) return refusalOf(checked.failure)
  const task = yield* requested
  const unchanged = (status: number, problem: string) =>
    isForm ? confirmation(task, name, problem, status) : Effect.succeed(text(problem, status))
  if (Result.isFailure(checked)) {
    return yield* checked.failure._tag === "TooMany"
      ? unchanged(429, `Too many wrong tokens. Try again in ${checked.failure.retryAfter} seconds.`)
      : unchanged(403, "Wrong token. Nothing was changed.")
  }
  if (name === "") return yield* unchanged(422, "Enter your name for the audit log. Nothing was changed.")
  const store = yield* OperatorStore
  return yield* store.replay({ name, source }, task.organization_id, task.id).pipe(
    Effect.matchEffect({
      onFailure: ({ message }) => unchanged(503, `${message}.`),
      onSuccess: Replay.$match({
        Replayed: () => Effect.succeed(isForm ? redirect(`${linkTo(task)}&replayed=1`) : text(`Replaying ${task.id}`)),
        NotDead: ({ state }) => unchanged(409, `This deletion is ${state}. Only a dead one can be replayed.`),
        NotFound: () => notFound
      })
    })
  )
})
