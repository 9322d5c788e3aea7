/** The building blocks of the operators' pages. */
import { type Content, h, type Html } from "../http/Html.ts"

/** A note in place of something that cannot be read. */
export const unreadable = (message: string): Html => h("p", { class: "note problem" }, `${message}.`)

/** Text in small print. */
export const small = (...text: ReadonlyArray<Content>): Html => h("small", {}, text)

/** An identifier, which may be long. */
export const id = (text: string, href?: string): Html =>
  h(href === undefined ? "span" : "a", { class: "id", href }, text)

/** A value in grey: nothing to see. */
export const none = (text: string): Html => h("span", { class: "none" }, text)

/** A link that looks like a button. */
export const button = (text: string, href: string, kind = ""): Html =>
  h("a", { class: `button ${kind}`.trim(), href }, text)

/** A part of a page under a heading. */
export const section = (key: string, title: string, ...content: ReadonlyArray<Content>): Html =>
  h("section", { "aria-labelledby": key, "data-key": key }, h("h2", { id: key }, title), content)

/** A column. The first one names its row. */
export interface Column<Row> {
  readonly title: Content
  readonly value: (row: Row) => Content
  readonly isNumber?: boolean
  /** The order of the rows by this column. */
  readonly sorted?: "ascending" | "descending" | undefined
}

/** Rows under a caption, which screen readers read. `key` identifies a row when the page is updated. */
export interface Table<Row> {
  readonly caption: string
  readonly columns: ReadonlyArray<Column<Row>>
  readonly rows: ReadonlyArray<Row>
  readonly key: (row: Row) => string
  /** Shown if there are no rows. */
  readonly empty: Content
}

const cell = <Row>({ isNumber, value }: Column<Row>, index: number, row: Row) =>
  index === 0 ? h("th", { scope: "row" }, value(row)) : h("td", { class: isNumber === true && "number" }, value(row))

/** A table that scrolls by itself on a narrow screen. */
export const table = <Row>({ caption, columns, empty, key, rows }: Table<Row>): Html => {
  if (rows.length === 0) return h("p", { class: "empty" }, empty)
  const heads = columns.map(({ isNumber, sorted, title }) =>
    h("th", { scope: "col", class: isNumber === true && "number", "aria-sort": sorted }, title)
  )
  const lines = rows.map((row) =>
    h(
      "tr",
      { "data-key": key(row) },
      columns.map((column, index) => cell(column, index, row))
    )
  )
  const content = [
    h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", {}, heads)),
    h("tbody", {}, lines)
  ]
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption }, h("table", {}, content))
}

/** The link to the next page of a list, if there is one. */
export const nextPage = (href: string | undefined): Content =>
  href !== undefined && h("p", { class: "more" }, button("Next page", href))

/** Names and values. Values that are `undefined` or `false` are left out. */
export const pairs = (entries: Readonly<Record<string, Content>>): Html =>
  h(
    "dl",
    {},
    Object.entries(entries).map(
      ([name, value]) => value !== undefined && value !== false && h("div", {}, h("dt", {}, name), h("dd", {}, value))
    )
  )

export type State = "fine" | "warning" | "problem"

/** A figure with its meaning. */
export const tile = (name: string, value: Content, about: Content, state: State = "fine"): Html =>
  h(
    "div",
    { class: `tile ${state}`, "data-key": name },
    h("dt", {}, name),
    h("dd", {}, value),
    h("dd", { class: "about" }, about)
  )

/** A state as a word on a color. */
export const badge = (kind: State | "quiet", text: string): Html => h("span", { class: `badge ${kind}` }, text)

/** Links to variants of a page, of which one is current. */
export const tabs = (all: ReadonlyArray<{ text: string; href: string; isCurrent: boolean }>): Html =>
  h(
    "ul",
    { class: "tabs" },
    all.map(({ href, isCurrent, text }) => h("li", {}, h("a", { href, "aria-current": isCurrent && "true" }, text)))
  )

/** A form that filters a list. `clear` is the path without the filter. */
export const filterForm = (
  path: string,
  fields: ReadonlyArray<readonly [name: string, label: string, value: string | undefined]>,
  clear: string,
  hidden?: Content
): Html =>
  h(
    "form",
    { class: "filter", method: "get", action: path, role: "search" },
    hidden,
    fields.map(([name, label, value]) =>
      h(
        "div",
        {},
        h("label", { for: name }, label),
        h("input", { id: name, name, value, maxlength: 200, autocomplete: "off", spellcheck: "false" })
      )
    ),
    h("button", {}, "Search"),
    fields.some(([, , value]) => value !== undefined) && button("Clear", clear)
  )
