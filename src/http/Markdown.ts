/** Documents of our own, written as markdown. */
import { Marked } from "marked"
import { Html } from "./Html.ts"

/** The id that GitHub gives to a heading. */
export const idOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replaceAll(/[^\w\s-]/g, "")
    .replaceAll(" ", "-")

const renderer = new Marked({
  renderer: {
    heading({ depth, text, tokens }) {
      return `<h${depth} id="${idOf(text)}">${this.parser.parseInline(tokens)}</h${depth}>`
    }
  }
})

/** Blocks; headings have ids. */
export const markdown = (text: string): Html => Html.markup(renderer.parse(text, { async: false }))

/** The text of one block. */
export const inline = (text: string): Html => Html.markup(renderer.parseInline(text, { async: false }))
