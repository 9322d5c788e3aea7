/** `/ops/keys` and `/ops/secrets`: API keys and signing secrets, how they are made, and how they are revoked. */
import { Effect, Option, Record, Redacted, Schema } from "effect"
import { type Content, h, link } from "../../http/Html.ts"
import type { IntakeSecret } from "../../deletions/IntakeSecrets.ts"
import type { ApiKey } from "../../keys/ApiKeys.ts"
import * as Commands from "../Commands.ts"
import * as Format from "../Format.ts"
import { badge, button, clamped, field, filterForm, id, nextPage, none, pairs, small, table } from "../Layout.ts"
import { type CredentialFilter, OperatorStore, type Page, Problem } from "../OperatorStore.ts"
import { inTime, page, type Query, shownOr } from "../Page.ts"
import * as Change from "./Change.ts"

type Operated<A> = Effect.Effect<A, Problem, OperatorStore>

const pagesOf = <Credential extends IntakeSecret>(kind: {
  readonly place: "/ops/keys" | "/ops/secrets"
  /** The noun, such as `API key`. */
  readonly one: string
  readonly read: (filter: CredentialFilter, after?: string) => Operated<Page<Credential>>
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
  const listOf = (organization: string | undefined) => link(place, { organization })

  const list = page(
    place,
    Effect.fnUntraced(function* (parameter) {
      const organization = parameter("organization")
      const found = yield* inTime(kind.read({ organization }, parameter("after")))
      return (now) => [
        filterForm(place, [["organization", "Organization", organization]], place),
        h("p", { class: "actions" })(button(`New ${one}…`, link(`${place}/create`, { organization }))),
        shownOr(found, ({ next, rows }) => [
          table<Credential>({
            caption: `${one}s`,
            rows,
            key: (row) => row.id,
            empty: organization === undefined ? `No ${one} yet.` : `${organization} has no ${one}.`,
            columns: {
              Organization: ({ organization_id: of }) => id(of, listOf(of)),
              ...kind.columns,
              Created: ({ created_at }) => Format.moment(created_at, now),
              State: ({ revoked_at: at }) =>
                at === null ? badge("fine", "active") : [badge("quiet", "revoked"), " ", small(Format.moment(at, now))],
              Change: ({ id: which, organization_id, revoked_at }) =>
                revoked_at === null &&
                h("a", { href: link(`${place}/revoke`, { organization: organization_id, id: which }) })("Revoke…")
            }
          }),
          nextPage(place, { organization }, next)
        ])
      ]
    })
  )

  const create = Change.make({
    place,
    path: `${place}/create`,
    title: `New ${one}`,
    subject: (parameter) =>
      Effect.succeed({ organization: parameter("organization") ?? "", name: parameter("purpose") ?? "" }),
    about: () => h("p")(`The ${one} is shown once. ${kind.follows.made}`),
    hidden: () => ({}),
    fields: ({ name, organization }) => [
      field("organization", "Organization", { required: true, value: organization, maxlength: 128 }),
      isNamed && field("purpose", "What it is for", { required: true, value: name, maxlength: 128 })
    ],
    button: `Make the ${one}`,
    cancel: ({ organization }) => listOf(organization === "" ? undefined : organization),
    make: Effect.fnUntraced(function* (actor, given) {
      const isLine = Schema.is(Commands.Line(""))
      if (!isLine(given.organization) || (isNamed && !isLine(given.name))) {
        const message = `Enter the organization${isNamed ? ", and what it is for" : ""}: 1 to 128 characters each.`
        return yield* new Problem({ status: 422, message })
      }
      const made = yield* kind.make(actor, given)
      const secret = Redacted.value(made.secret)
      const view = () => [
        h("p", { class: "note warning" })("Copy it now: it is not shown again."),
        h("pre")(secret),
        pairs({ Organization: id(given.organization, listOf(given.organization)), Id: id(made.id) }),
        h("p")(button("Done", listOf(given.organization), "main"))
      ]
      return { text: secret, page: { title: `The new ${one}`, view } }
    })
  })

  const requested = Effect.fnUntraced(function* (parameter: Query) {
    const filter = { organization: parameter("organization"), id: parameter("id") ?? "" }
    const [row] = (yield* kind.read(filter)).rows
    return row ?? (yield* new Problem({ status: 404, message: `There is no ${one} ${filter.id}.` }))
  })

  const revoke = Change.make({
    place,
    path: `${place}/revoke`,
    title: `Revoke this ${one}?`,
    subject: requested,
    about: (row) => [
      pairs({
        Organization: id(row.organization_id),
        Id: id(row.id),
        ...Record.map(kind.columns, (of) => of(row))
      }),
      h("p")(`It stops working at once, for good. ${kind.follows.revoked}`)
    ],
    hidden: ({ id: which, organization_id: organization }) => ({ organization, id: which }),
    button: `Revoke this ${one}`,
    cancel: ({ organization_id: of }) => listOf(of),
    make: Effect.fnUntraced(function* (actor, { id: which, organization_id: of }) {
      if (Option.isSome(yield* kind.revoke(actor, which))) return { text: `Revoked ${which}`, page: listOf(of) }
      return yield* new Problem({ status: 409, message: `This ${one} was revoked before.` })
    })
  })

  return { list, create, revoke }
}

export const keys = pagesOf<ApiKey>({
  place: "/ops/keys",
  one: "API key",
  isNamed: true,
  read: (filter, after) => OperatorStore.use((store) => store.keys(filter, after)),
  columns: {
    Name: ({ name }) => clamped(name),
    Key: (key) => [id(`${key.prefix}…`), " ", small(key.id)],
    "Last used": ({ last_used_on }) => last_used_on ?? none("never")
  },
  follows: { made: "It reads the data of its organization.", revoked: "Requests with it get 401." },
  make: (actor, given) => OperatorStore.use((store) => store.createKey(actor, given)),
  revoke: (actor, which) => OperatorStore.use((store) => store.revokeKey(actor, which))
})

export const secrets = pagesOf<IntakeSecret>({
  place: "/ops/secrets",
  one: "signing secret",
  isNamed: false,
  read: (filter, after) => OperatorStore.use((store) => store.secrets(filter, after)),
  columns: { Id: (secret) => id(secret.id) },
  follows: {
    made: "From then on, deliveries of the organization must be signed.",
    revoked:
      "Deliveries that it signs get 401. Without a secret, an organization need not sign, unless REQUIRE_SIGNATURES is set."
  },
  make: (actor, { organization }) => OperatorStore.use((store) => store.addSecret(actor, organization)),
  revoke: (actor, which) => OperatorStore.use((store) => store.revokeSecret(actor, which))
})
