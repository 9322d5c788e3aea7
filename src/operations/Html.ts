/**
 * HTML that cannot be injected into: it is made by the tag `html` alone, and the tag escapes every value that is not HTML
 * itself. Values stand between tags, or in attributes between quotes.
 */

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;"
}

// Control characters, and those that change the direction of what stands around them.
const invisible = /[\p{Cc}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/gu

const escaped = (text: string) =>
  text
    .toWellFormed()
    .replaceAll(invisible, (found) => (found === "\n" ? found : "\ufffd"))
    .replaceAll(/[&<>"']/g, (found) => escapes[found] ?? "")

/** Escaped HTML. */
export class Html {
  readonly #text: string

  private constructor(text: string) {
    this.#text = text
  }

  /** The HTML as text. */
  get text(): string {
    return this.#text
  }

  /** Made of the constant parts of a template, and of values. */
  static of(strings: TemplateStringsArray, values: ReadonlyArray<Content>): Html {
    return new Html(strings.map((part, index) => part + (index < values.length ? textOf(values[index]) : "")).join(""))
  }
}

/** What may stand in HTML. Nothing is shown of undefined, null and false. */
export type Content = Html | string | number | undefined | null | false | ReadonlyArray<Content>

const textOf = (content: Content): string => {
  if (content === undefined || content === null || content === false) return ""
  if (content instanceof Html) return content.text
  if (typeof content === "string" || typeof content === "number") return escaped(String(content))
  return content.map(textOf).join("")
}

/** See the top of the file. */
export const html = (strings: TemplateStringsArray, ...values: ReadonlyArray<Content>): Html => Html.of(strings, values)

/** A path with parameters, of which those without a value are left out. */
export const link = (path: string, parameters: Readonly<Record<string, string | undefined>> = {}): string => {
  const given = Object.entries(parameters).flatMap(([name, value]) =>
    value === undefined ? [] : [`${name}=${encodeURIComponent(value.toWellFormed())}`]
  )
  return given.length === 0 ? path : `${path}?${given.join("&")}`
}
