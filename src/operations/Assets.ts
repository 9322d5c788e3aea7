/** The stylesheet and the script of the operators' pages. */

/** Text has a contrast of at least 4.5 to its background, lines and bars of at least 3. */
export const style = `
:root {
  --ground: #fafaf9; --surface: #ffffff; --text: #1c1917; --muted: #57534e; --line: #d6d3d1; --soft: #f0efed;
  --link: #0f766e; --amber: #b45309; --red: #b91c1c;
  --fine: #166534; --fine-ground: #dcfce7; --warning: #8a3b0c; --warning-ground: #fef3c7;
  --problem: #991b1b; --problem-ground: #fee2e2;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #1c1917; --surface: #262220; --text: #f5f5f4; --muted: #b5afaa; --line: #4a4541; --soft: #35302d;
    --link: #5eead4; --amber: #fbbf24; --red: #f87171;
    --fine: #bbf7d0; --fine-ground: #14532d; --warning: #fde68a; --warning-ground: #713f12;
    --problem: #fecaca; --problem-ground: #7f1d1d;
  }
}
*, ::before, ::after { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; scrollbar-gutter: stable }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif }
header, main, footer { max-width: 78rem; margin: 0 auto; padding: .5rem 1.5rem 1.5rem }
a { color: var(--link); text-underline-offset: .15em }
:focus-visible { outline: 2px solid var(--link); outline-offset: 2px; border-radius: 2px }
main:focus { outline: none }
.skip, .unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
.skip:focus { width: auto; height: auto; clip-path: none; background: var(--surface); padding: .6rem 1rem }
[hidden] { display: none !important }

header { display: flex; flex-wrap: wrap; align-items: center; gap: 0 2rem; padding-bottom: 0 }
.brand { margin: 0; font-weight: 650 }
.brand a { color: inherit; text-decoration: none }
.brand span { font-weight: 400; color: var(--muted) }
nav ul, .tabs, .legend { display: flex; flex-wrap: wrap; gap: 0 .25rem; list-style: none; margin: 0; padding: 0 }
header nav a { display: block; padding: .6rem .65rem; color: var(--muted); text-decoration: none }
header nav a:hover { color: var(--text) }
header nav a[aria-current] { color: var(--text); border-bottom: 2px solid var(--link); font-weight: 600 }
#live { display: flex; align-items: center; gap: .75rem; margin-left: auto; color: var(--muted); font-size: 13px }
#live-state { font-weight: 600; padding: .15rem .5rem; border-radius: 4px }
#live.failed #live-state { color: var(--problem); background: var(--problem-ground) }
#live.failed #live-time { display: none }
.stale main { filter: grayscale(1) }

h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0 1.25rem; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 0 0 .75rem }
h3 { font-size: .95rem; margin: 0 }
section { margin: 2rem 0 0 }
p { margin: .4rem 0; max-width: 70ch }
small, .about, summary, label, footer, .legend { color: var(--muted); font-size: 13px }
.empty, .none { color: var(--muted) }
footer { border-top: 1px solid var(--line) }
code, .id, pre { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; overflow-wrap: anywhere }
.id { unicode-bidi: isolate }
pre { background: var(--soft); padding: .75rem; margin: 0; border-radius: 6px; white-space: pre-wrap }
time span { white-space: nowrap }
time, .number, .tile dd, #live-time { font-variant-numeric: tabular-nums }

.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .75rem }
.tile, figure, .scroll { background: var(--surface); border: 1px solid var(--line); border-radius: 6px }
.tile { border-left-width: 4px; padding: .65rem .85rem }
.tile dt { color: var(--muted); font-size: 13px }
.tile dd { font-size: 1.5rem; line-height: 1.3; font-weight: 600; overflow-wrap: anywhere }
.tile dd.about { font-size: 13px; font-weight: 400 }
.tile.warning { border-left-color: var(--amber) }
.tile.problem { border-left-color: var(--red) }
.tile.problem dd:not(.about) { color: var(--red) }

.badge { padding: 0 .5rem; border-radius: 4px; font-size: 13px; font-weight: 600; white-space: nowrap }
.note { border-left: 4px solid; padding: .6rem .85rem; border-radius: 0 6px 6px 0 }
.badge, .note { background: var(--soft); color: var(--muted) }
.badge.fine, .note.fine { background: var(--fine-ground); color: var(--fine) }
.badge.warning, .note.warning { background: var(--warning-ground); color: var(--warning) }
.badge.problem, .note.problem { background: var(--problem-ground); color: var(--problem) }

.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .45rem .75rem; font-weight: 400 }
tr + tr > *, tbody > :first-child > * { border-top: 1px solid var(--line) }
thead th { color: var(--muted); font-size: 13px; font-weight: 600; white-space: nowrap }
thead th a { color: inherit }
th[aria-sort=descending] a::after { content: " ↓" }
th[aria-sort=ascending] a::after { content: " ↑" }
tbody tr:hover { background: var(--soft) }
.number { text-align: right; white-space: nowrap }
td small, th small { display: block; white-space: nowrap }
td .text { max-width: 26rem; min-width: 9rem; overflow-wrap: anywhere; overflow: hidden }
td .text { display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3 }
td .id, th .id { display: inline-block; min-width: 7rem; max-width: 21rem }

dl, dd { margin: 0 }
dl > div:not(.tile) { display: grid; grid-template-columns: minmax(8rem, 14rem) 1fr; gap: 0 1rem; padding: .4rem 0 }
dl > div:not(.tile) + div { border-top: 1px solid var(--line) }
dl > div:not(.tile) > dt { color: var(--muted) }
dl > div:not(.tile) > dd { overflow-wrap: anywhere }

.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem }
figure { margin: 0; padding: .75rem .85rem; min-width: 0 }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem }
.all, .p50 { color: var(--link) }
.client, .p95 { color: var(--amber) }
.server, .p99 { color: var(--red) }
.legend { gap: 0 .9rem }
.legend li::before { content: "■ "; font-size: 16px }
.plot { position: relative; margin-top: .6rem; padding-left: 3.6rem }
.plot svg { display: block; width: 100%; height: 9rem; overflow: visible }
.axis { position: absolute; left: 0; top: -.4rem; bottom: -.4rem; width: 3.2rem; text-align: right; line-height: .8rem }
.axis { display: flex; flex-direction: column; justify-content: space-between }
.axis, .times { font-size: 12px; color: var(--muted); white-space: nowrap }
.times { display: flex; justify-content: space-between; margin: .25rem 0 .4rem 3.6rem; max-width: none }
path { fill: none; stroke: currentColor }
.grid, .lines { vector-effect: non-scaling-stroke }
.grid { color: var(--line) }
.lines { stroke-width: 2; stroke-linejoin: round }
.lines.p95 { stroke-dasharray: 7 3 }
.lines.p99 { stroke-dasharray: 2 3 }
.hint { fill: transparent }
summary { cursor: pointer; width: fit-content }
figure .scroll { max-height: 16rem; overflow: auto; margin-top: .5rem }

form { display: flex; flex-wrap: wrap; align-items: end; gap: .75rem; margin: 1rem 0 }
form.confirm { flex-direction: column; align-items: start }
label { display: block }
input, button, .button { font: inherit; color: var(--text); background: var(--surface); padding: .4rem .65rem }
input, button, .button { border: 1px solid var(--muted); border-radius: 6px; min-height: 2.4rem; max-width: 100% }
input { width: 18rem }
button, .button { cursor: pointer; font-weight: 600; text-decoration: none }
button:hover, .button:hover { background: var(--soft) }
.main:not(main) { background: var(--link); border-color: var(--link); color: var(--surface) }
.main:not(main):hover { filter: brightness(1.1) }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; margin: 1rem 0; max-width: none }
.tabs { gap: .5rem; margin-bottom: 1rem }
.tabs a { display: block; padding: .3rem .75rem; border: 1px solid var(--line); border-radius: 999px }
.tabs a { text-decoration: none; color: var(--text); background: var(--surface) }
.tabs a[aria-current] { border-color: var(--link); box-shadow: inset 0 0 0 1px var(--link); font-weight: 600 }
.more { margin-top: 1rem }

@media (max-width: 45rem) {
  header, main, footer { padding-left: 1rem; padding-right: 1rem }
  header nav { order: 3; width: 100%; overflow-x: auto }
  header nav ul { flex-wrap: nowrap }
  header nav a { white-space: nowrap }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem }
  .tile dd { font-size: 1.25rem }
  dl > div:not(.tile) { grid-template-columns: 1fr }
  form > div, input { width: 100% }
  td .id, th .id { max-width: 12rem }
}
@media print {
  header, form, .actions, .more { display: none }
  .scroll { overflow: visible }
}
`.trimStart()

/**
 * Fetches the page every 5 seconds and changes only the nodes that differ, so that focus, scrolling, open details,
 * selections and fields stay as they are.
 */
export const script = `"use strict"
const [main, live, state, time, pause] =
  ["main", "live", "live-state", "live-time", "live-pause"].map((id) => document.getElementById(id))
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
  for (const { name } of [...from.attributes]) {
    if (!to.hasAttribute(name) && name !== "open") from.removeAttribute(name)
  }
  for (const { name, value } of to.attributes) from.setAttribute(name, value)
  let next = from.firstChild
  for (const wanted of [...to.childNodes]) {
    const key = keyOf(wanted)
    const known = key ? [...from.children].find((child) => keyOf(child) === key) : next
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

const say = (text, kind) => {
  live.className = kind
  document.documentElement.classList.toggle("stale", kind === "failed")
  // A screen reader repeats what is written again.
  if (state.textContent !== text) state.textContent = text
}

const refresh = async () => {
  clearTimeout(timer)
  try {
    const response = await fetch(location.href, { signal: AbortSignal.timeout(4000) })
    const page = new DOMParser().parseFromString(await response.text(), "text/html")
    if (!response.ok && response.status !== 404) throw new Error("Status " + response.status)
    const selection = getSelection()
    const isSelecting = !selection.isCollapsed && main.contains(selection.anchorNode)
    failedSince = undefined
    if (isPaused) return
    if (!isSelecting) {
      const focused = document.activeElement
      change(main, page.getElementById("main"))
      change(document.querySelector("footer"), page.querySelector("footer"))
      if (focused !== document.activeElement) focused.focus({ preventScroll: true })
      time.textContent = "updated " + clock(new Date())
    }
    say("Live", "")
  } catch (error) {
    failedSince ??= new Date()
    const why = error.message.startsWith("Status") ? error.message : "No answer"
    if (!isPaused) say(why + " since " + clock(failedSince) + " UTC", "failed")
  }
  if (!isPaused && !document.hidden) timer = setTimeout(refresh, 5000)
}

pause.addEventListener("click", () => {
  isPaused = !isPaused
  pause.setAttribute("aria-pressed", String(isPaused))
  if (!isPaused) return void refresh()
  clearTimeout(timer)
  say("Paused", "")
})
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && !isPaused) refresh()
})
live.hidden = false
say("Live", "")
time.textContent = "updated " + clock(new Date())
timer = setTimeout(refresh, 5000)
`
