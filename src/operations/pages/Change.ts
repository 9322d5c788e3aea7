/** The pages of changes: a form that confirms one, and the change itself, with the operators' token and a name. */
import { ByteSize, Effect, Redacted, Result, Schema } from "effect"
import { HttpIncomingMessage, type HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Content, h } from "../../http/Html.ts"
import { addressOf, credentials, responseTo, Token } from "../Access.ts"
import type { Actor } from "../Commands.ts"
import { button, field } from "../Layout.ts"
import { type OperatorStore, Problem } from "../OperatorStore.ts"
import { type Query, query, respond, type Shown, showProblem, usable } from "../Page.ts"

/** The response to a program; and the page that follows, or its path. */
export interface Made {
  readonly text: string
  readonly page: string | Pick<Shown, "title" | "view">
}

export interface Change<Subject> extends Required<Pick<Shown, "place" | "title">> {
  readonly path: HttpRouter.PathInput
  /** The subject that the parameters name. */
  readonly subject: (parameter: Query) => Effect.Effect<Subject, Problem, OperatorStore>
  readonly about: (subject: Subject) => Content
  /** The parameters that the form sends. */
  readonly hidden: (subject: Subject) => Readonly<Record<string, string | undefined>>
  readonly fields?: (subject: Subject) => Content
  readonly button: string
  readonly cancel: (subject: Subject) => string
  readonly make: (actor: Actor, subject: Subject) => Effect.Effect<Made, Problem, OperatorStore>
}

const nameless = new Problem({ status: 422, message: "Enter your name for the audit log. Nothing was changed." })

/** The problem in a form: to a 401, a browser asks for HTTP Basic. */
const wrong = new Problem({ status: 403, message: "Wrong token. Nothing was changed." })

const Form = Schema.Record(Schema.String, Schema.String)

/** The parameters of the form and the URL, and the credentials of the form; without any, those of HTTP Basic. */
const submitted = Effect.gen(function* () {
  const inUrl = yield* query
  const form = yield* HttpServerRequest.schemaBodyUrlParams(Form).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(16)),
    Effect.orElseSucceed((): typeof Form.Type => ({}))
  )
  const { name = "", token } = form
  const given = token === undefined ? yield* credentials : { name, token: Redacted.make(token) }
  const parameter: Query = (key) => usable(form[key]) ?? inUrl(key)
  const line = given.name.replaceAll(/[\p{Cc}\s]+/gu, " ").trim()
  return { parameter, name: line.slice(0, 100).toWellFormed(), token: given.token }
})

/** The handlers of a change: its form, and the change itself. */
export const make = <Subject>(change: Change<Subject>) => {
  const { place, title } = change
  const shown = { place, title, isLive: false }

  /** The form, with the name and the problem of the last try. */
  const form = (subject: Subject, name: string, problem?: Problem) =>
    respond({
      ...shown,
      status: problem?.status ?? 200,
      view: () => [
        problem !== undefined && h("p", { class: "note problem", role: "alert" })(problem.message),
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
    return yield* form(subject, (yield* credentials).name)
  })

  const submit = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const { check, isSet } = yield* Token
    const { name, parameter, token } = yield* submitted
    const source = addressOf(request)
    // Read once: after a change that may be done, the store may not respond any more.
    const subject = yield* Effect.cached(change.subject(parameter))
    const isForm = isSet && token !== undefined && request.headers["accept"]?.includes("text/html") === true
    const attempt = Effect.gen(function* () {
      yield* check(token, source)
      if (name === "") return yield* nameless
      return yield* change.make({ name, source }, yield* subject)
    })
    const made = yield* Effect.result(attempt)
    if (Result.isFailure(made)) {
      if (!isForm) return responseTo(made.failure)
      return yield* form(yield* subject, name, made.failure.status === 401 ? wrong : made.failure)
    }
    const { page, text } = made.success
    if (!isForm) return HttpServerResponse.text(`${text}\n`)
    return typeof page === "string"
      ? HttpServerResponse.redirect(page, { status: 303 })
      : yield* respond({ ...shown, ...page })
  })

  return [
    ["GET", change.path, Effect.catch(confirm, showProblem(shown))],
    ["POST", change.path, Effect.catch(submit, showProblem(shown))]
  ] as const
}
