/**
 * Fetches the page every 5 seconds and changes only the nodes that differ, so that focus, scrolling, open details,
 * selections and fields stay as they are. Runs in the browser.
 */
"use strict"
const [main, live, state, time, pause] = ["main", "live", "live-state", "live-time", "live-pause"].map((id) =>
  document.getElementById(id)
)
let timer
let isPaused = false
let failedSince

const clock = (date) => date.toISOString().slice(11, 19)
const keyOf = (node) => node.dataset?.key ?? node.id

const change = (from, to) => {
  if (from.isEqualNode(to) || from.nodeName === "INPUT") return
  if (from.nodeType !== Node.ELEMENT_NODE) {
    from.nodeValue = to.nodeValue
    return
  }
  for (const name of from.getAttributeNames()) if (name !== "open" && !to.hasAttribute(name)) from.removeAttribute(name)
  for (const { name, value } of to.attributes) from.setAttribute(name, value)
  let next = from.firstChild
  // A copy: a new node moves from one page to the other.
  for (const wanted of Array.from(to.childNodes)) {
    const key = keyOf(wanted)
    const known = key ? Array.from(from.children).find((child) => keyOf(child) === key) : next
    if (known?.nodeName !== wanted.nodeName || (!key && keyOf(known))) {
      from.insertBefore(wanted, next)
      continue
    }
    if (known === next) next = next.nextSibling
    else from.insertBefore(known, next)
    change(known, wanted)
  }
  while (next) {
    const { nextSibling } = next
    next.remove()
    next = nextSibling
  }
}

const say = (text, isStale = false) => {
  document.documentElement.classList.toggle("stale", isStale)
  // A screen reader repeats what is written again.
  if (state.textContent !== text) state.textContent = text
}

const isSelecting = () => {
  const { anchorNode, isCollapsed } = getSelection()
  return !isCollapsed && main.contains(anchorNode)
}

const refresh = async () => {
  try {
    const response = await fetch(location.href, { signal: AbortSignal.timeout(4000) })
    const page = new DOMParser().parseFromString(await response.text(), "text/html")
    if (!response.ok && response.status !== 404) throw new Error(`Status ${response.status}`)
    failedSince = undefined
    if (isPaused) return
    if (!isSelecting()) {
      const focused = document.activeElement
      change(main, page.getElementById("main"))
      change(document.querySelector("footer"), page.querySelector("footer"))
      if (focused !== document.activeElement) focused.focus({ preventScroll: true })
      time.textContent = `updated ${clock(new Date())}`
    }
    say("Live")
  } catch (error) {
    failedSince ??= new Date()
    const why = error.message.startsWith("Status") ? error.message : "No answer"
    if (!isPaused) say(`${why} since ${clock(failedSince)} UTC`, true)
  }
  if (isPaused) return
  clearTimeout(timer)
  timer = setTimeout(refresh, 5000)
}

pause.addEventListener("click", () => {
  isPaused = !isPaused
  pause.setAttribute("aria-pressed", String(isPaused))
  clearTimeout(timer)
  if (isPaused) say("Paused")
  else void refresh()
})
live.hidden = false
say("Live")
time.textContent = `updated ${clock(new Date())}`
timer = setTimeout(refresh, 5000)
