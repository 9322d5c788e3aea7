/** The pages of changes: a form that confirms one, and the change itself, with the operators' token and a name. */
import { ByteSize, Data, Effect, Redacted, Result, Schema } from "effect"
import { HttpIncomingMessage, type HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Content, h } from "../../http/Html.ts"
import { addressOf, credentials as ofBasic, refusalOf, Token } from "../Access.ts"
import type { Actor } from "../Commands.ts"
import { button, field } from "../Layout.ts"
import type { OperatorStore, Unreadable } from "../OperatorStore.ts"
import { type Place, type Query, query, respond, usable } from "../Page.ts"

/** The result of a change. `text` is the response to a program. */
export type Made = Data.TaggedEnum<{
  Led: { readonly to: string; readonly text: string }
  Shown: { readonly title: string; readonly view: Content; readonly text: string }
  Unchanged: { readonly status: number; readonly problem: string }
}>
export const Made = Data.taggedEnum<Made>()

type Response = HttpServerResponse.HttpServerResponse

export interface Change<Subject> {
  readonly place: Place
  readonly path: HttpRouter.PathInput
  readonly title: string
  /** The subject that the parameters name; or the response in place of the form. */
  readonly subject: (parameter: Query) => Effect.Effect<Subject, Response, OperatorStore>
  readonly about: (subject: Subject) => Content
  /** The parameters that the form sends. */
  readonly hidden: (subject: Subject) => Readonly<Record<string, string | undefined>>
  readonly fields?: (subject: Subject) => Content
  readonly button: string
  readonly cancel: (subject: Subject) => string
  readonly make: (actor: Actor, subject: Subject) => Effect.Effect<Made, Unreadable, OperatorStore>
}

const text = (line: string, status = 200) => HttpServerResponse.text(`${line}\n`, { status })

const Form = Schema.Record(Schema.String, Schema.String)

/** The parameters of the form and the URL, and the credentials of the form; without any, those of HTTP Basic. */
const submitted = Effect.gen(function* () {
  const inUrl = yield* query
  const form = yield* HttpServerRequest.schemaBodyUrlParams(Form).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(16)),
    Effect.orElseSucceed((): typeof Form.Type => ({}))
  )
  const { name = "", token } = form
  const given = token === undefined ? yield* ofBasic : { name, token: Redacted.make(token) }
  const parameter: Query = (key) => usable(form[key]) ?? inUrl(key)
  const actor =
    given?.name
      .replaceAll(/[\p{Cc}\s]+/gu, " ")
      .trim()
      .slice(0, 100)
      .toWellFormed() ?? ""
  return { parameter, actor, token: given?.token }
})

/** The handlers of a change: its form, and the change itself. */
export const make = <Subject>(change: Change<Subject>) => {
  const { place, title } = change

  /** The form, with the name and the problem of the last try. */
  const form = (subject: Subject, name: string, problem?: string, status = 200) =>
    respond({
      title,
      place,
      isLive: false,
      status,
      view: () => [
        problem !== undefined && h("p", { class: "note problem", role: "alert" })(problem),
        change.about(subject),
        h("form", { class: "confirm", method: "post", action: change.path, autocomplete: "off" })(
          Object.entries(change.hidden(subject)).map(
            ([key, value]) => value !== undefined && h("input", { type: "hidden", name: key, value })()
          ),
          change.fields?.(subject),
          field("name", "Your name, for the audit log", { required: true, value: name, maxlength: 100 }),
          field("token", "Operators' token (OPERATIONS_TOKEN)", { required: true, type: "password", maxlength: 255 }),
          h("p", { class: "actions" })(
            h("button", { class: "main" })(change.button),
            button("Cancel", change.cancel(subject))
          )
        )
      ]
    })

  const confirm = Effect.gen(function* () {
    const subject = yield* change.subject(yield* query)
    return yield* form(subject, (yield* ofBasic)?.name ?? "")
  })

  const submit = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const operators = yield* Token
    const isForm = request.headers["accept"]?.includes("text/html") === true
    const { actor, parameter, token } = yield* submitted
    if (token === undefined) {
      return text("Send the operators' token with HTTP Basic or in the form.", operators.isSet ? 401 : 403)
    }
    const source = addressOf(request)
    const checked = yield* Effect.result(operators.check(token, source))
    if (Result.isFailure(checked) && (!isForm || checked.failure._tag === "NotSet")) return refusalOf(checked.failure)
    const subject = yield* change.subject(parameter)
    const unchanged = (status: number, problem: string) =>
      isForm ? form(subject, actor, problem, status) : Effect.succeed(text(problem, status))
    if (Result.isFailure(checked)) {
      return yield* checked.failure._tag === "TooMany"
        ? unchanged(429, `Too many wrong tokens. Try again in ${checked.failure.retryAfter} seconds.`)
        : unchanged(403, "Wrong token. Nothing was changed.")
    }
    if (actor === "") return yield* unchanged(422, "Enter your name for the audit log. Nothing was changed.")
    return yield* change.make({ name: actor, source }, subject).pipe(
      Effect.matchEffect({
        onFailure: ({ message }) => unchanged(503, `${message}.`),
        onSuccess: Made.$match({
          Led: (made) =>
            Effect.succeed(isForm ? HttpServerResponse.redirect(made.to, { status: 303 }) : text(made.text)),
          Shown: (made) =>
            isForm
              ? respond({ title: made.title, place, isLive: false, view: () => made.view })
              : Effect.succeed(text(made.text)),
          Unchanged: ({ problem, status }) => unchanged(status, problem)
        })
      })
    )
  })

  return [
    ["GET", change.path, confirm],
    ["POST", change.path, submit]
  ] as const
}
