/** The building blocks of the operators' pages. */
import { type Content, h, type Html } from "../http/Html.ts"

export const unreadable = (message: string): Html => h("p", { class: "note problem" })(message)

export const small = (...text: ReadonlyArray<Content>): Html => h("small")(text)

export const id = (text: string, href?: string): Html =>
  h(href === undefined ? "span" : "a", { class: "id", href })(text)

/** A text of at most three lines. */
export const clamped = (text: string | null): Html => h("span", { class: "text" })(text ?? undefined)

export const section = (key: string, title: string, ...content: ReadonlyArray<Content>): Html =>
  h("section", { "aria-labelledby": key })(h("h2", { id: key })(title), content)

type Cell<Row> = (row: Row) => Content

/** Columns by their titles. The first one names its row. */
export type Columns<Row> = Readonly<Record<string, Cell<Row> | { readonly number: Cell<Row> }>>

interface Table<Row> {
  /** Read by screen readers. */
  readonly caption: string
  readonly rows: ReadonlyArray<Row>
  readonly columns: Columns<Row>
}

/** A table that scrolls by itself on a narrow screen. */
export const table = <Row>({ caption, columns, rows }: Table<Row>): Html => {
  if (rows.length === 0) return h("p", { class: "empty" })("None.")
  const all = Object.entries(columns).map(([title, column]) =>
    typeof column === "function" ? { title, cell: column } : { title, cell: column.number, kind: "number" }
  )
  const heads = all.map(({ kind, title }) => h("th", { scope: "col", class: kind })(title))
  const lines = rows.map((row) => {
    const cells = all.map(({ cell, kind }, index) =>
      h(index === 0 ? "th" : "td", { scope: index === 0 && "row", class: kind })(cell(row))
    )
    return h("tr")(cells)
  })
  const content = h("table")(h("thead")(h("tr")(heads)), h("tbody")(lines))
  return h("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption })(content)
}

/** Names and values. Values that are `undefined` or `false` are left out. */
export const pairs = (entries: Readonly<Record<string, Content>>): Html =>
  h("dl")(
    Object.entries(entries).map(
      ([name, value]) =>
        value !== undefined && value !== false && h("div", { class: "pair" })(h("dt")(name), h("dd")(value))
    )
  )

export type Severity = "fine" | "warning" | "problem"

/** The severity of a value that should be low. */
export const severityOf = (value: number, warning: number, problem: number): Severity =>
  value > problem ? "problem" : value > warning ? "warning" : "fine"

export const tile = (name: string, value: Content, about: Content, severity: Severity = "fine"): Html =>
  h("div", { class: `tile ${severity}` })(h("dt")(name), h("dd")(value), h("dd", { class: "about" })(about))

export const badge = (kind: Severity | "quiet", text: string): Html => h("span", { class: `badge ${kind}` })(text)

const labelled = (name: string, label: string, input: Html) => h("div")(h("label", { for: name })(label), input)

/** The label of a filter, and its values if there are few. */
export type Filter = readonly [label: string, ...values: ReadonlyArray<string>]

const filterField = (name: string, [label, ...values]: Filter, current: string | undefined) => {
  if (values.length === 0) {
    const attributes = { value: current, maxlength: 200, autocomplete: "off", spellcheck: "false" }
    return labelled(name, label, h("input", { id: name, name, ...attributes })())
  }
  const options = ["", ...values].map((value) => h("option", { value, selected: value === current })(value || "any"))
  return labelled(name, label, h("select", { id: name, name })(options))
}

export const filterForm = (
  path: string,
  filters: Readonly<Record<string, Filter>>,
  values: Readonly<Record<string, string | undefined>>
): Html =>
  h("form", { class: "filter", method: "get", action: path, role: "search" })(
    Object.entries(filters).map(([name, filter]) => filterField(name, filter, values[name])),
    h("button")("Search"),
    h("a", { class: "button", href: path })("Clear")
  )
