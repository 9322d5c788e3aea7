/**
 * `/ops/keys` and `/ops/secrets`: API keys and signing secrets, their creation and revocation; and `/ops/audit`: the
 * changes by operators, newest first.
 */
import { Effect, Option, Record, Redacted, Schema } from "effect"
import { type Content, h, link } from "../../http/Html.ts"
import type { SigningSecret } from "../../keys/SigningSecrets.ts"
import type { ApiKey } from "../../keys/ApiKeys.ts"
import * as Commands from "../Commands.ts"
import * as Format from "../Format.ts"
import { badge, button, clamped, field, id, pairs, small } from "../Layout.ts"
import { type CredentialFilter, type FirstRows, OperatorStore, type Problem, problem } from "../OperatorStore.ts"
import { list as listOf, parametersOf, type RequestParameters } from "../Page.ts"
import * as Change from "./Change.ts"
import { linkTo } from "./Deletions.ts"

type Operated<A> = Effect.Effect<A, Problem, OperatorStore>

/** The routes of a list of credentials, and of the changes of it. */
const routesOf = <Credential extends SigningSecret>(kind: {
  readonly place: "/ops/keys" | "/ops/secrets"
  /** The noun, such as `API key`. */
  readonly one: string
  readonly read: (filter: CredentialFilter) => Operated<FirstRows<Credential>>
  readonly columns: { readonly [name: string]: (one: Credential) => Content }
  /** The consequences of making one, and of revoking one. */
  readonly follows: { readonly made: string; readonly revoked: string }
  readonly make: (
    actor: Commands.Actor,
    given: { readonly organization: string; readonly name: string }
  ) => Operated<{ readonly id: string; readonly secret: Redacted.Redacted }>
  readonly revoke: (actor: Commands.Actor, id: string) => Operated<Option.Option<unknown>>
  readonly isNamed: boolean
}) => {
  const { isNamed, one, place } = kind
  const pathOf = (organization: string) => link(place, { organization: organization === "" ? undefined : organization })

  const list = listOf<Credential>({
    place,
    filters: { organization: ["Organization"] },
    read: ({ organization }) => kind.read({ organization }),
    above: (filter) => h("p", { class: "actions" })(button(`New ${one}…`, link(`${place}/create`, filter))),
    columns: (now) => ({
      Organization: ({ organization_id: of }) => id(of, pathOf(of)),
      ...kind.columns,
      Created: ({ created_at }) => Format.moment(created_at, now),
      State: ({ revoked_at: at }) =>
        at === null ? badge("fine", "active") : [badge("quiet", "revoked"), " ", small(Format.moment(at, now))],
      Change: (row) =>
        row.revoked_at === null && h("a", { href: link(`${place}/revoke`, parametersOf(row)) })("Revoke…")
    })
  })

  const creating = ({ organization = "", purpose = "" }: RequestParameters) => {
    const name = isNamed ? purpose : one
    const make = Effect.fnUntraced(function* (actor: Commands.Actor) {
      if (![organization, name].every(Schema.is(Commands.Line("")))) {
        return yield* problem(422, "Each field takes 1 to 128 characters.")
      }
      const made = yield* kind.make(actor, { organization, name })
      const secret = Redacted.value(made.secret)
      const view = () => [
        h("p", { class: "note warning" })("Copy it now: it is not shown again."),
        h("pre")(secret),
        pairs({ Organization: id(organization), Id: id(made.id) }),
        h("p")(button("Done", pathOf(organization)))
      ]
      return { text: secret, view }
    })
    return Effect.succeed({
      about: () => h("p")(`The ${one} is shown once. ${kind.follows.made}`),
      fields: [
        field("organization", "Organization", { required: true, value: organization, maxlength: 128 }),
        isNamed && field("purpose", "What it is for", { required: true, value: name, maxlength: 128 })
      ],
      back: pathOf(organization),
      make
    })
  }

  const revoking = Effect.fnUntraced(function* ({ id: which = "", organization: of }: RequestParameters) {
    const [row] = (yield* kind.read({ organization: of, id: which })).rows
    if (row === undefined) return yield* problem(404, `There is no ${one} ${which}.`)
    const { organization_id: organization } = row
    return {
      parameters: parametersOf(row),
      about: () => [
        pairs({ Organization: id(organization), Id: id(which), ...Record.map(kind.columns, (cell) => cell(row)) }),
        h("p")(`It stops working at once, for good. ${kind.follows.revoked}`)
      ],
      back: pathOf(organization),
      make: Effect.fnUntraced(function* (actor: Commands.Actor) {
        if (Option.isSome(yield* kind.revoke(actor, which))) return { text: `Revoked ${which}` }
        return yield* problem(409, `This ${one} was revoked before.`)
      })
    }
  })

  return [
    list,
    ...Change.routesOf(place, `${place}/create`, `Make a new ${one}`, ["organization", "purpose"], creating),
    ...Change.routesOf(place, `${place}/revoke`, `Revoke this ${one}`, ["organization", "id"], revoking)
  ] as const
}

export const keys = routesOf<ApiKey>({
  place: "/ops/keys",
  one: "API key",
  isNamed: true,
  read: (filter) => OperatorStore.use((store) => store.keys(filter)),
  columns: {
    Name: ({ name }) => clamped(name),
    Key: (key) => [id(`${key.prefix}…`), " ", small(key.id)],
    "Last used": ({ last_used_on }) => last_used_on ?? "never"
  },
  follows: { made: "It reads the data of its organization.", revoked: "Requests with it get 401." },
  make: (actor, given) => OperatorStore.use((store) => store.createKey(actor, given)),
  revoke: (actor, which) => OperatorStore.use((store) => store.revokeKey(actor, which))
})

export const secrets = routesOf<SigningSecret>({
  place: "/ops/secrets",
  one: "signing secret",
  isNamed: false,
  read: (filter) => OperatorStore.use((store) => store.secrets(filter)),
  columns: { Id: (secret) => id(secret.id) },
  follows: {
    made: "From then on, deliveries of the organization must be signed.",
    revoked:
      "Deliveries that it signs get 401. Without a valid secret, so do all of the organization, until you run: secrets allow-unsigned."
  },
  make: (actor, { organization }) => OperatorStore.use((store) => store.addSecret(actor, organization)),
  revoke: (actor, which) => OperatorStore.use((store) => store.revokeSecret(actor, which))
})

export const audit = listOf<Commands.Entry>({
  place: "/ops/audit",
  filters: { organization: ["Organization"], target: ["Id of a key, secret or task"] },
  read: (filter) => OperatorStore.use((store) => store.audit(filter)),
  columns: (now) => ({
    When: ({ at }) => Format.moment(at, now),
    Who: ({ actor, source }) => [actor, " ", small(source)],
    What: ({ action }) => id(action),
    Result: ({ result }) => result,
    Target: ({ action, organization_id, target }) =>
      id(target, action.startsWith("task.") ? linkTo({ organization_id, id: target }) : undefined),
    Organization: ({ organization_id: of }) => id(of)
  })
})
