/** Copies the examples of a page, filters the endpoints of a documentation, and sends their requests. Runs in the browser. */
"use strict"
const main = document.getElementById("main")
const given = { PRACTICE_DATA_URL: location.origin, PRACTICE_DATA_API_KEY: main.dataset.key ?? "" }
// The headers that were typed, for the next request.
const typed = {}

const element = (name, properties, ...children) => {
  const made = Object.assign(document.createElement(name), properties)
  made.append(...children)
  return made
}

const field = (label, input) => element("label", {}, label, input)

/** The request of a curl command. */
const requestOf = (curl) => {
  const text = curl.replaceAll(/\$(\w+)/g, (variable, name) => given[name] ?? variable)
  const headers = Array.from(text.matchAll(/-H ["']([^:]+): ([^"']*)/g), ([, name, value]) => [name, value])
  return { url: /"(http[^"]*)"/.exec(text)[1], headers, body: /-d '([\s\S]*)'$/.exec(text)?.[1] }
}

const send = async ({ body, headers, url }, output) => {
  output.textContent = "Sending ..."
  try {
    const method = body === undefined ? "GET" : "POST"
    const response = await fetch(url, { method, headers, body, signal: AbortSignal.timeout(30_000) })
    const text = await response.text()
    const shown = text.startsWith("{") ? JSON.stringify(JSON.parse(text), null, 2) : text
    output.textContent = `${response.status} ${response.statusText}\n${shown}`
  } catch (error) {
    output.textContent = `No response: ${error.message}`
  }
}

const formOf = ({ body, headers, url }) => {
  const output = element("output", { className: "code" })
  const inputs = headers.map(([name, value]) => {
    const input = element("input", { value: typed[name] ?? value, autocomplete: "off" })
    input.addEventListener("change", () => (typed[name] = input.value))
    return [name, input]
  })
  const text = element("textarea", { value: body ?? "", rows: 3, spellcheck: false })
  const form = element("form", {}, ...inputs.map(([name, input]) => field(name, input)))
  if (body !== undefined) form.append(field("Body", text))
  form.append(element("button", {}, `Send to ${new URL(url).pathname}`), output)
  form.addEventListener("submit", (event) => {
    event.preventDefault()
    const filled = Object.fromEntries(inputs.map(([name, input]) => [name, input.value]))
    void send({ url, headers: filled, body: body === undefined ? undefined : text.value }, output)
  })
  return form
}

const copy = async (code, button) => {
  // Browsers have no clipboard for pages without TLS.
  if (navigator.clipboard) await navigator.clipboard.writeText(code.textContent)
  else getSelection().selectAllChildren(code)
  button.textContent = navigator.clipboard ? "Copied" : "Selected"
}

for (const code of document.querySelectorAll("pre")) {
  code.textContent = code.textContent.replaceAll("http://127.0.0.1:3000", location.origin)
  const bar = element("p", { className: "bar" })
  const copying = element("button", { type: "button" }, "Copy")
  copying.addEventListener("click", () => void copy(code, copying))
  bar.append(copying)
  const box = element("div", { className: "beside" })
  code.replaceWith(box)
  box.append(code, bar)
  if (code.dataset.request === undefined) continue
  const trying = element("button", { type: "button" }, "Try it")
  trying.addEventListener("click", () => {
    const form = formOf(requestOf(code.textContent))
    box.after(form)
    trying.remove()
    form.elements[0].focus()
  })
  bar.append(trying)
}

/** Hides the endpoints that lack a word of a text, and the parts of the page without an endpoint. */
const filter = (text, articles) => {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean)
  for (const { article, content } of articles) article.hidden = !words.every((word) => content.includes(word))
  for (const part of main.querySelectorAll(":scope > :not(h1)"))
    part.hidden = words.length > 0 && part.querySelector("article:not([hidden]) [data-request]") === null
  for (const link of document.querySelectorAll("#contents a"))
    link.hidden = document.getElementById(link.hash.slice(1)).hidden
  return `${articles.filter(({ article }) => !article.hidden).length} of ${articles.length}`
}

const found = Array.from(main.querySelectorAll("article:has([data-request])"), (article) => ({
  article,
  content: article.textContent.toLowerCase()
}))
if (found.length > 0) {
  const box = element("input", { type: "search", placeholder: "Endpoint or field", ariaLabel: "Filter the endpoints" })
  const output = element("output")
  const show = () => (output.textContent = filter(box.value, found))
  box.addEventListener("input", () => {
    show()
    scrollTo(0, 0)
  })
  document.querySelector("header p").append(box, output)
  // A link to what is hidden ends the filter.
  addEventListener("hashchange", () => {
    const target = document.getElementById(location.hash.slice(1))
    if (target?.checkVisibility() !== false) return
    box.value = ""
    show()
    target.scrollIntoView()
  })
}
