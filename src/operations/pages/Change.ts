/** The pages of changes: a form that confirms one, and the change itself, with the operators' token and a name. */
import { ByteSize, Effect, Redacted, Result, Schema } from "effect"
import { HttpIncomingMessage, type HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Content, h, link } from "../../http/Html.ts"
import { addressOf, credentials, responseTo, Token } from "../Access.ts"
import type { Actor } from "../Commands.ts"
import { button, field } from "../Layout.ts"
import { type OperatorStore, Problem } from "../OperatorStore.ts"
import { inTime, type Query, query, respond, type Shown, showProblem, usable, type View } from "../Page.ts"

/** The response to a program; and the page that follows, by default the one before. */
export interface Made {
  readonly text: string
  readonly view?: View
}

export interface Change<Subject> extends Pick<Shown, "place"> {
  readonly path: HttpRouter.PathInput
  /** The title of the form, and the text of its button. */
  readonly title: string
  /** The subject that the parameters name. */
  readonly subject: (parameter: Query) => Effect.Effect<Subject, Problem, OperatorStore>
  /** The parameters that name it, beside the fields. */
  readonly parameters: (subject: Subject) => Readonly<Record<string, string | undefined>>
  readonly about: (subject: Subject, now: number) => Content
  readonly fields?: (subject: Subject) => Content
  /** The page before the form. */
  readonly back: (subject: Subject) => string
  readonly make: (actor: Actor, subject: Subject) => Effect.Effect<Made, Problem, OperatorStore>
}

const nameless = new Problem({ status: 422, message: "Enter your name for the audit log. Nothing was changed." })

/** The problem in a form: to a 401, a browser asks for HTTP Basic. */
const wrong = new Problem({ status: 403, message: "Wrong token. Nothing was changed." })

const Form = Schema.Record(Schema.String, Schema.String)

/** The parameters of the form and the URL, and the credentials of the form; without any, those of HTTP Basic. */
const submitted = Effect.gen(function* () {
  const request = yield* HttpServerRequest.HttpServerRequest
  const inUrl = yield* query
  const form = yield* HttpServerRequest.schemaBodyUrlParams(Form).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(16)),
    Effect.orElseSucceed((): typeof Form.Type => ({}))
  )
  const { name = "", token } = form
  const given = token === undefined ? yield* credentials : { name, token: Redacted.make(token) }
  const line = given.name.replaceAll(/[\p{Cc}\s]+/gu, " ").trim()
  return {
    parameter: (key: string) => usable(form[key]) ?? inUrl(key),
    actor: { name: line.slice(0, 100).toWellFormed(), source: addressOf(request) },
    token: given.token,
    isBrowser: given.token !== undefined && request.headers["accept"]?.includes("text/html") === true
  }
})

/** The routes of a change: its form, and the change itself. */
export const make = <Subject>(change: Change<Subject>) => {
  const { path, place, title } = change
  const shown = { place, title, isLive: false }

  /** The form, with the name and the problem of the last try. */
  const form = (subject: Subject, name: string, problem?: Problem) =>
    respond({
      ...shown,
      status: problem?.status ?? 200,
      view: (now) => [
        problem !== undefined && h("p", { class: "note problem", role: "alert" })(problem.message),
        change.about(subject, now),
        h("form", {
          class: "confirm",
          method: "post",
          action: link(path, change.parameters(subject)),
          autocomplete: "off"
        })(
          change.fields?.(subject),
          field("name", "Your name, for the audit log", { required: true, value: name, maxlength: 100 }),
          field("token", "Operators' token (OPERATIONS_TOKEN)", { required: true, type: "password", maxlength: 255 }),
          h("p", { class: "actions" })(h("button", { class: "main" })(title), button("Cancel", change.back(subject)))
        )
      ]
    })

  const confirm = Effect.gen(function* () {
    const subject = yield* inTime(Effect.flatMap(query, change.subject))
    return yield* form(subject, (yield* credentials).name)
  })

  const submit = Effect.gen(function* () {
    const { check } = yield* Token
    const { actor, isBrowser, parameter, token } = yield* submitted
    const attempt = Effect.fnUntraced(function* (subject: Subject) {
      yield* check(token)
      return yield* actor.name === "" ? nameless : change.make(actor, subject)
    })
    const done = Effect.gen(function* () {
      const subject = yield* change.subject(parameter)
      const made = yield* Effect.result(attempt(subject))
      if (Result.isFailure(made)) {
        if (!isBrowser) return responseTo(made.failure)
        return yield* form(subject, actor.name, made.failure.status === 401 ? wrong : made.failure)
      }
      const { text, view } = made.success
      if (!isBrowser) return HttpServerResponse.text(`${text}\n`)
      return view === undefined
        ? HttpServerResponse.redirect(change.back(subject), { status: 303 })
        : yield* respond({ ...shown, view })
    })
    return yield* Effect.catch(done, isBrowser ? showProblem(shown) : (one) => Effect.succeed(responseTo(one)))
  })

  return [
    ["GET", path, Effect.catch(confirm, showProblem(shown))],
    ["POST", path, submit]
  ] as const
}
