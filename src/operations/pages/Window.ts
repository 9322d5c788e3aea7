/** The span of time that a page tells of. */
import { type Html, html, link } from "../Html.ts"

export type WindowName = "hour" | "day"

/** How long they are, in milliseconds. */
export const spanOf = { hour: 3_600_000, day: 86_400_000 } as const

const titles = [
  ["hour", "Last hour"],
  ["day", "Last day"]
] as const

/** The span that a parameter names; the hour by default. */
export const windowOf = (given: string | undefined): WindowName => (given === "day" ? "day" : "hour")

/** Links to the same page for each span. */
export const windowTabs = (
  path: string,
  window: WindowName,
  parameters: Readonly<Record<string, string | undefined>> = {}
): Html =>
  html`<ul class="tabs">
    ${titles.map(
      ([name, title]) =>
        html`<li>
          <a
            href="${link(path, { ...parameters, window: name === "hour" ? undefined : name })}"
            ${name === window && html` aria-current="true"`}
            >${title}</a
          >
        </li>`
    )}
  </ul>`
