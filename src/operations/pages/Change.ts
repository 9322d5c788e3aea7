/** The pages of changes: a form that confirms one, and the change itself, with the operators' token and a name. */
import { ByteSize, Effect, Redacted, Result, Schema } from "effect"
import { HttpIncomingMessage, type HttpRouter, HttpServerRequest, HttpServerResponse } from "effect/http"
import { type Content, h, link } from "../../http/Html.ts"
import { addressOf, credentials, responseTo, Token } from "../Access.ts"
import type { Actor } from "../Commands.ts"
import { button, field } from "../Layout.ts"
import { type OperatorStore, type Problem, problem } from "../OperatorStore.ts"
import * as Page from "../Page.ts"

/** The response to a program; and the page that follows, by default the one before. */
interface Made {
  readonly text: string
  readonly view?: Page.View
}

interface Change {
  /** The parameters that name it, beside the fields. */
  readonly parameters?: Page.RequestParameters
  readonly about: Page.View
  readonly fields?: Content
  /** The page before the form. */
  readonly back: string
  readonly make: (actor: Actor) => Effect.Effect<Made, Problem, OperatorStore>
}

/** The problem in a form: to a 401, a browser asks for HTTP Basic. */
const wrong = problem(403, "Wrong token. Nothing was changed.")

/** The parameters of the form and the URL, and the credentials of the form; without any, those of HTTP Basic. */
const submitted = Effect.fnUntraced(function* (known: ReadonlyArray<string>) {
  const request = yield* HttpServerRequest.HttpServerRequest
  const form = yield* HttpServerRequest.schemaBodyUrlParams(Schema.Record(Schema.String, Schema.String)).pipe(
    Effect.provideService(HttpIncomingMessage.MaxBodySize, ByteSize.kibibytes(16)),
    Effect.mapError(() => problem(422, "Expected a form of at most 16 KiB, with each field once. Nothing was changed."))
  )
  const { name = "", token, ...fields } = form
  const given = token === undefined ? yield* credentials : { name, token: Redacted.make(token) }
  const line = given.name.replaceAll(/[\p{Cc}\s]+/gu, " ").trim()
  return {
    parameters: { ...(yield* Page.parametersInUrl(known)), ...(yield* Page.understood(fields, known)) },
    actor: { name: line.slice(0, 100).toWellFormed(), source: addressOf(request) },
    token: given.token,
    isBrowser: given.token !== undefined && request.headers["accept"]?.includes("text/html") === true
  }
})

/** The routes of a change: its form, whose button has its title, and the change itself, which the known parameters name. */
export const routesOf = (
  place: Page.Place,
  path: HttpRouter.PathInput,
  title: string,
  known: ReadonlyArray<string>,
  read: (parameters: Page.RequestParameters) => Effect.Effect<Change, Problem, OperatorStore>
) => {
  const shown = { place, title, isLive: false }

  /** The form, with the name and the problem of the last try. */
  const form = ({ about, back, fields, parameters }: Change, name: string, failure?: Problem) =>
    Page.respond({
      ...shown,
      status: failure?.status ?? 200,
      view: (now) => [
        failure !== undefined && h("p", { class: "note problem", role: "alert" })(failure.message),
        about(now),
        h("form", { class: "confirm", method: "post", action: link(path, parameters), autocomplete: "off" })(
          fields,
          field("name", "Your name, for the audit log", { required: true, value: name, maxlength: 100 }),
          field("token", "Operators' token (OPERATIONS_TOKEN)", { required: true, type: "password", maxlength: 255 }),
          h("p", { class: "actions" })(h("button", { class: "main" })(title), button("Back", back))
        )
      ]
    })

  const confirm = Effect.gen(function* () {
    const change = yield* Page.inTime(Effect.flatMap(Page.parametersInUrl(known), read))
    return yield* form(change, (yield* credentials).name)
  })

  const submit = Effect.gen(function* () {
    const { check } = yield* Token
    const { actor, isBrowser, parameters, token } = yield* submitted(known)
    const done = Effect.gen(function* () {
      const change = yield* read(parameters)
      const nameless = problem(422, "Enter your name for the audit log. Nothing was changed.")
      const attempt = Effect.andThen(check(token), actor.name === "" ? nameless : change.make(actor))
      if (!isBrowser) return HttpServerResponse.text(`${(yield* attempt).text}\n`)
      const made = yield* Effect.result(attempt)
      if (Result.isFailure(made)) {
        return yield* form(change, actor.name, made.failure.status === 401 ? wrong : made.failure)
      }
      const { view } = made.success
      return view === undefined
        ? HttpServerResponse.redirect(change.back, { status: 303 })
        : yield* Page.respond({ ...shown, view })
    })
    return yield* Effect.catch(done, isBrowser ? Page.showProblem(shown) : responseTo)
  })

  return [
    ["GET", path, Effect.catch(confirm, Page.showProblem(shown))],
    ["POST", path, Effect.catch(submit, responseTo)]
  ] as const
}
