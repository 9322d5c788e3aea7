/** `/ops/keys`, `/ops/secrets` and `/ops/audit`: API keys, signing secrets, and the changes by operators, newest first. */
import * as ApiKeys from "../../keys/ApiKeys.ts"
import * as SigningSecrets from "../../keys/SigningSecrets.ts"
import { link } from "../../http/Html.ts"
import * as Commands from "../Commands.ts"
import * as Format from "../Format.ts"
import { badge, clamped, id, small } from "../Layout.ts"
import * as Page from "../Page.ts"
import { linkTo } from "./Deletions.ts"

const organizationFilter = { organization: ["Organization"] } as const

const state = ({ revoked_at: at }: SigningSecrets.SigningSecret, now: number) =>
  at === null ? badge("fine", "active") : [badge("quiet", "revoked"), " ", small(Format.moment(at, now))]

export const keys = Page.list<ApiKeys.ApiKey>({
  place: "/ops/keys",
  filters: organizationFilter,
  read: ({ organization }, limit) => Page.readKeys(ApiKeys.list(organization, limit)),
  columns: (now) => ({
    Organization: ({ organization_id: organization }) => id(organization, link("/ops/keys", { organization })),
    Name: ({ name }) => clamped(name),
    Key: (key) => [id(`${key.prefix}…`), " ", small(key.id)],
    "Last used": ({ last_used_on }) => last_used_on ?? "never",
    Created: ({ created_at }) => Format.moment(created_at, now),
    State: (key) => state(key, now)
  })
})

export const secrets = Page.list<SigningSecrets.SigningSecret>({
  place: "/ops/secrets",
  filters: organizationFilter,
  read: ({ organization }, limit) => Page.readTasks(SigningSecrets.list(organization, limit)),
  columns: (now) => ({
    Organization: ({ organization_id: organization }) => id(organization, link("/ops/secrets", { organization })),
    Id: (secret) => id(secret.id),
    Created: ({ created_at }) => Format.moment(created_at, now),
    State: (secret) => state(secret, now)
  })
})

export const audit = Page.list<Commands.Entry>({
  place: "/ops/audit",
  filters: { ...organizationFilter, target: ["Id of a key, secret or task"] },
  read: (filter, limit) => Page.readBoth(Commands.auditLog(filter, limit)),
  columns: (now) => ({
    When: ({ at }) => Format.moment(at, now),
    Who: ({ actor, source }) => [actor, " ", small(source)],
    What: ({ action }) => id(action),
    Result: ({ result }) => result,
    Target: ({ action, organization_id, target }) =>
      id(target, action.startsWith("task.") ? linkTo({ organization_id, id: target }) : undefined),
    Organization: ({ organization_id: organization }) => id(organization)
  })
})
