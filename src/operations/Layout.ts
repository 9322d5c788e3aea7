/** The building blocks of the operators' pages. */
import { type Content, h, type Html, link } from "../http/Html.ts"
import * as Format from "./Format.ts"

/** A note in place of something that cannot be read. */
export const unreadable = (message: string): Html => h("p", { class: "note problem" })(message)

export const small = (...text: ReadonlyArray<Content>): Html => h("small")(text)

/** An identifier, which may be long. */
export const id = (text: string, href?: string): Html =>
  h(href === undefined ? "span" : "a", { class: "id", href })(text)

/** A value in grey: nothing to see. */
export const none = (text: string): Html => h("span", { class: "none" })(text)

/** A text of at most three lines. */
export const clamped = (text: string | null): Html => h("span", { class: "text" })(text ?? undefined)

export const button = (text: string, href: string, kind = ""): Html =>
  h("a", { class: `button ${kind}`.trim(), href })(text)

export const section = (key: string, title: string, ...content: ReadonlyArray<Content>): Html =>
  h("section", { "aria-labelledby": key, "data-key": key })(h("h2", { id: key })(title), content)

type Cell<Row> = (row: Row) => Content

/** Rows and columns by their titles. The first column names its row. */
export interface Table<Row> {
  /** Read by screen readers. */
  readonly caption: string
  readonly rows: ReadonlyArray<Row>
  /** Identifies a row when the page is updated. */
  readonly key: (row: Row) => string
  /** Shown if there are no rows. */
  readonly empty?: Content
  readonly columns: Readonly<Record<string, Cell<Row> | { readonly number: Cell<Row> }>>
  /** The column that orders the rows, and the link to the same table in the order of another. */
  readonly sort?: { readonly order: string; readonly link: (title: string) => string }
}

/** A table that scrolls by itself on a narrow screen. */
export const table = <Row>({ caption, columns, empty, key, rows, sort }: Table<Row>): Html => {
  if (rows.length === 0) return h("p", { class: "empty" })(empty)
  const all = Object.entries(columns).map(([title, column]) =>
    typeof column === "function" ? { title, cell: column } : { title, cell: column.number, kind: "number" }
  )
  const heads = all.map(({ kind, title }) =>
    h("th", { scope: "col", class: kind, "aria-sort": title === sort?.order && (kind ? "descending" : "ascending") })(
      sort === undefined ? title : h("a", { href: sort.link(title) })(title)
    )
  )
  const lines = rows.map((row) => {
    const cells = all.map(({ cell, kind }, index) =>
      h(index === 0 ? "th" : "td", { scope: index === 0 && "row", class: kind })(cell(row))
    )
    return h("tr", { "data-key": key(row) })(cells)
  })
  const content = [h("caption", { class: "unseen" })(caption), h("thead")(h("tr")(heads)), h("tbody")(lines)]
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption })(h("table")(content))
}

export const nextPage = (path: string, parameters: Parameters<typeof link>[1], after: string | undefined): Content =>
  after !== undefined && h("p")(button("Next page", link(path, { ...parameters, after })))

/** Names and values. Values that are `undefined` or `false` are left out. */
export const pairs = (entries: Readonly<Record<string, Content>>): Html =>
  h("dl")(
    Object.entries(entries).map(
      ([name, value]) =>
        value !== undefined && value !== false && h("div", { class: "pair" })(h("dt")(name), h("dd")(value))
    )
  )

export type State = "fine" | "warning" | "problem"

/** The state of a value that should be low. */
export const stateOf = (value: number, warning: number, problem: number): State =>
  value > problem ? "problem" : value > warning ? "warning" : "fine"

export const tile = (name: string, value: Content, about: Content, state: State = "fine"): Html =>
  h("div", { class: `tile ${state}`, "data-key": name })(
    h("dt")(name),
    h("dd")(value),
    h("dd", { class: "about" })(about)
  )

export const lagTile = (name: string, seconds: number | undefined, about: string, href?: string): Html => {
  if (seconds === undefined) return tile(name, "–", "not measured here")
  const text = Format.span(seconds * 1000)
  return tile(name, href === undefined ? text : h("a", { href })(text), about, stateOf(seconds, 10, 60))
}

export const badge = (kind: State | "quiet", text: string): Html => h("span", { class: `badge ${kind}` })(text)

/** Links to variants of a page, of which one is current. */
export const tabs = (all: ReadonlyArray<{ text: string; href: string; isCurrent: boolean }>): Html =>
  h("ul", { class: "tabs" })(
    all.map(({ href, isCurrent, text }) => h("li")(h("a", { href, "aria-current": isCurrent && "true" })(text)))
  )

export const field = (name: string, label: string, attributes: Parameters<typeof h>[1]): Html =>
  h("div")(h("label", { for: name })(label), h("input", { id: name, name, ...attributes })())

/** A form that filters a list. `clear` is the path without the filter. */
export const filterForm = (
  path: string,
  fields: ReadonlyArray<readonly [name: string, label: string, value: string | undefined]>,
  clear: string,
  hidden?: Content
): Html =>
  h("form", { class: "filter", method: "get", action: path, role: "search" })(
    hidden,
    fields.map(([name, label, value]) =>
      field(name, label, { value, maxlength: 200, autocomplete: "off", spellcheck: "false" })
    ),
    h("button")("Search"),
    fields.some(([, , value]) => value !== undefined) && button("Clear", clear)
  )
