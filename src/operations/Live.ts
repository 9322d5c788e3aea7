/**
 * Keeps a page up to date in a browser: asks for the same page again, and changes what is different in place, so that
 * focus, scrolling, open details and what is being typed stay as they are.
 */
export const script = `"use strict"
const every = 5000
const patience = 4000
const [main, footer, live, state, time, pause] =
  ["main", "", "live", "live-state", "live-time", "live-pause"].map((id) => id === "" ? document.querySelector("footer") : document.getElementById(id))
let timer
let isPaused = false
let failedSince

const clock = (date) => date.toISOString().slice(11, 19)
const keyOf = (node) => node.nodeType === Node.ELEMENT_NODE ? node.dataset.key || node.id || undefined : undefined
const isField = (node) => ["INPUT", "SELECT", "TEXTAREA"].includes(node.nodeName)

const changeAttributes = (from, to) => {
  for (const { name, value } of [...to.attributes]) if (from.getAttribute(name) !== value) from.setAttribute(name, value)
  for (const { name } of [...from.attributes]) {
    const isOwn = name === "open" && from.nodeName === "DETAILS"
    if (!isOwn && !to.hasAttribute(name)) from.removeAttribute(name)
  }
}

const change = (from, to) => {
  if (from.nodeType !== Node.ELEMENT_NODE) {
    if (from.nodeValue !== to.nodeValue) from.nodeValue = to.nodeValue
    return
  }
  if (isField(from) || from.isEqualNode(to)) return
  changeAttributes(from, to)
  const known = new Map([...from.children].flatMap((child) => keyOf(child) === undefined ? [] : [[keyOf(child), child]]))
  let next = from.firstChild
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted)
    const candidate = key === undefined ? next : known.get(key)
    const fits = candidate && candidate.nodeName === wanted.nodeName && keyOf(candidate) === key
    if (!fits) {
      from.insertBefore(document.importNode(wanted, true), next)
      continue
    }
    if (candidate === next) next = next.nextSibling
    else from.insertBefore(candidate, next)
    change(candidate, wanted)
  }
  while (next) {
    const gone = next
    next = next.nextSibling
    gone.remove()
  }
}

const say = (text, kind) => {
  live.className = kind
  document.documentElement.classList.toggle("stale", kind === "failed")
  // What has not changed is not read out again.
  if (state.textContent !== text) state.textContent = text
}

const show = (text) => {
  const page = new DOMParser().parseFromString(text, "text/html")
  const focused = document.activeElement
  change(main, page.getElementById("main"))
  change(footer, page.querySelector("footer"))
  if (focused && focused !== document.activeElement && focused.isConnected) focused.focus({ preventScroll: true })
}

const refresh = async () => {
  clearTimeout(timer)
  try {
    const response = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(patience) })
    const text = await response.text()
    if (!response.ok && response.status !== 404) throw new Error("It answers with status " + response.status)
    const selection = getSelection()
    const isSelecting = selection && !selection.isCollapsed && main.contains(selection.anchorNode)
    if (!isSelecting && !isPaused) {
      show(text)
      time.textContent = "updated " + clock(new Date())
    }
    failedSince = undefined
    if (!isPaused) say("Live", "")
  } catch (error) {
    failedSince ??= new Date()
    const why = error instanceof Error && error.message.startsWith("It answers") ? error.message : "No answer"
    if (!isPaused) say(why + " since " + clock(failedSince) + " UTC", "failed")
  }
  if (!isPaused && !document.hidden) timer = setTimeout(refresh, every)
}

pause.addEventListener("click", () => {
  isPaused = !isPaused
  pause.setAttribute("aria-pressed", String(isPaused))
  if (!isPaused) return void refresh()
  clearTimeout(timer)
  say("Paused", "paused")
})
document.addEventListener("visibilitychange", () => {
  clearTimeout(timer)
  if (!document.hidden && !isPaused) refresh()
})
live.hidden = false
say("Live", "")
time.textContent = "updated " + clock(new Date())
timer = setTimeout(refresh, every)
`
