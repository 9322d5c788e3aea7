/** `/ops/keys`: API keys and when they were last used, without what would open anything. */
import { Result } from "effect"
import type { ApiKey } from "../../keys/ApiKeys.ts"
import * as Format from "../Format.ts"
import { type Html, html, link } from "../Html.ts"
import { badge, table, unreadable } from "../Layout.ts"
import type { Page, Unreadable } from "../OperatorStore.ts"

export interface Shown {
  readonly now: number
  readonly organization: string | undefined
  readonly page: Result.Result<Page<ApiKey>, Unreadable>
}

const path = "/ops/keys"

const day = 86_400_000

const lastUsed = ({ created_at, last_used_on, revoked_at }: ApiKey, now: number) => {
  if (last_used_on === null) {
    const isOld = revoked_at === null && now - Date.parse(created_at) > 30 * day
    return isOld ? badge("warning", "never") : html`<span class="none">never</span>`
  }
  const days = Math.floor((now - Date.parse(last_used_on)) / day)
  return html`<time datetime="${last_used_on}">${last_used_on}</time>
    <small>${days < 1 ? "today" : days === 1 ? "yesterday" : `${Format.count(days)} days ago`}</small>`
}

/** The page, below its heading. */
export const body = ({ now, organization, page }: Shown): Html =>
  html`<form class="filter" method="get" action="${path}" role="search">
      <div>
        <label for="organization">Organization</label
        ><input
          id="organization"
          name="organization"
          value="${organization}"
          maxlength="200"
          autocomplete="off"
          spellcheck="false"
        />
      </div>
      <button>Search</button>
      ${organization !== undefined && html`<a class="button" href="${path}">Clear</a>`}
    </form>
    ${
      Result.isFailure(page)
        ? unreadable(page.failure.message)
        : html`${table<ApiKey>({
            caption: "API keys",
            rows: page.success.rows,
            keyOf: ({ id }) => id,
            none:
              organization === undefined
                ? html`There is no API key. <code>keys create --organization ID --name NAME</code> makes one.`
                : `${organization} has no API key.`,
            columns: [
              {
                title: "Organization",
                isName: true,
                value: ({ organization_id }) =>
                  html`<a class="id" href="${link(path, { organization: organization_id })}">${organization_id}</a>`
              },
              { title: "Name", value: ({ name }) => html`<span class="text">${name}</span>` },
              {
                title: "Key",
                value: ({ id, prefix }) => html`<span class="id">${prefix}…</span> <small>${id}</small>`
              },
              { title: "Created", value: ({ created_at }) => Format.moment(created_at, now) },
              { title: "Last used", value: (key) => lastUsed(key, now) },
              {
                title: "State",
                value: ({ revoked_at }) =>
                  revoked_at === null
                    ? badge("fine", "works")
                    : html`${badge("quiet", "revoked")} <small>${Format.moment(revoked_at, now)}</small>`
              }
            ]
          })}${
            page.success.next !== undefined &&
            html`<p class="more">
              <a class="button" href="${link(path, { organization, after: page.success.next })}">Next page</a>
            </p>`
          }`
    }
    <p>
      <small
        >Keys are made and revoked by the commands <code>keys create</code> and <code>keys revoke</code>. The day of the
        last use is in UTC.</small
      >
    </p>`
