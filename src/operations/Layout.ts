/** What all pages have in common. */
import { icon } from "../http/Page.ts"
import { iso, utc } from "./Format.ts"
import { type Content, type Html, html } from "./Html.ts"

/** The pages of the navigation. */
const places = [
  ["/ops", "Overview"],
  ["/ops/requests", "Requests"],
  ["/ops/deletions", "Deletions"],
  ["/ops/keys", "API keys"],
  ["/ops/changes", "Changes"],
  ["/ops/audit", "Audit log"]
] as const

export type Place = (typeof places)[number][0]

export interface Shown {
  readonly title: string
  /** Where it stands in the navigation. */
  readonly place: Place
  readonly now: number
  readonly version: string
  /** Whether it shows what changes by itself. A page with something to fill in does not. */
  readonly isLive: boolean
  readonly body: Content
}

/** A page as a document. */
export const page = ({ body, isLive, now, place, title, version }: Shown): Html =>
  html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${title} · Practice Data operations</title>
        <link rel="icon" href="${icon}" />
        <link rel="stylesheet" href="/ops/style.css" />
        ${
          isLive &&
          html`<noscript><meta http-equiv="refresh" content="15" /></noscript>
            <script src="/ops/live.js" defer></script>`
        }
      </head>
      <body>
        <a class="skip" href="#main">Skip to the content</a>
        <header>
          <p class="brand">
            <a href="/ops">Practice Data <span>operations</span></a>
          </p>
          <nav aria-label="Pages">
            <ul>
              ${places.map(
                ([path, name]) =>
                  html`<li><a href="${path}" ${path === place && html` aria-current="page"`}>${name}</a></li>`
              )}
            </ul>
          </nav>
          <div id="live" hidden>
            <p><span id="live-state" role="status"></span> <span id="live-time"></span></p>
            <button type="button" id="live-pause" aria-pressed="false">Pause</button>
          </div>
        </header>
        <main id="main" tabindex="-1">
          <h1>${title}</h1>
          ${body}
        </main>
        <footer>
          <p>
            Version ${version}.
            <span data-key="made">As of <time datetime="${iso(now)}">${utc(now)}</time>.</span> All times are UTC.
          </p>
        </footer>
      </body>
    </html> `

/** Why something is not shown, in its place. */
export const unreadable = (message: string): Html => html`<p class="note problem">${message}.</p>`

/** A part of a page under a heading. */
export const section = (id: string, title: Content, body: Content): Html =>
  html`<section aria-labelledby="${id}" data-key="${id}">
    <h2 id="${id}">${title}</h2>
    ${body}
  </section>`

export interface Column<Row> {
  readonly title: Content
  readonly value: (row: Row) => Content
  /** Whether it is read as the name of its row. */
  readonly isName?: boolean
  readonly isNumber?: boolean
  /** `ascending` or `descending` where the rows are in the order of it. */
  readonly sorted?: "ascending" | "descending" | undefined
}

export interface Table<Row> {
  /** What it shows, for who does not see it. */
  readonly caption: string
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly keyOf: (row: Row) => string
  /** What to say when there are no rows. */
  readonly none: Content
}

/** A table. On a narrow screen it scrolls by itself. */
export const table = <Row>({ caption, columns, keyOf, none, rows }: Table<Row>): Html =>
  rows.length === 0
    ? html`<p class="empty">${none}</p>`
    : html`<div class="scroll" tabindex="0" role="region" aria-label="${caption}">
        <table>
          <caption class="unseen">
            ${caption}
          </caption>
          <thead>
            <tr>
              ${columns.map(
                ({ isNumber, sorted, title }) =>
                  html`<th
                    scope="col"
                    ${isNumber && html` class="number"`}${sorted !== undefined && html` aria-sort="${sorted}"`}
                  >
                    ${title}
                  </th>`
              )}
            </tr>
          </thead>
          <tbody>
            ${rows.map(
              (row) =>
                html`<tr data-key="${keyOf(row)}">
                  ${columns.map(({ isName, isNumber, value }) =>
                    isName
                      ? html`<th scope="row">${value(row)}</th>`
                      : html`<td${isNumber && html` class="number"`}>${value(row)}</td>`
                  )}
                </tr>`
            )}
          </tbody>
        </table>
      </div>`

/** Names and their values below each other. */
export const pairs = (entries: ReadonlyArray<readonly [name: string, value: Content]>): Html =>
  html`<dl>
    ${entries.map(
      ([name, value]) =>
        html`<div>
          <dt>${name}</dt>
          <dd>${value}</dd>
        </div>`
    )}
  </dl>`

/** A figure with what it means. */
export const tile = (
  name: string,
  value: Content,
  about: Content,
  state: "fine" | "warning" | "problem" = "fine"
): Html =>
  html`<div class="tile ${state}" data-key="${name}">
    <dt>${name}</dt>
    <dd>${value}</dd>
    <dd class="about">${about}</dd>
  </div>`

/** A word for a state, told by more than its color. */
export const badge = (kind: "fine" | "warning" | "problem" | "quiet", text: string): Html =>
  html`<span class="badge ${kind}">${text}</span>`
