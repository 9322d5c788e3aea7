/** The style of all pages. Text has a contrast of at least 4.5 to what is behind it, lines and bars of at least 3. */
export const style = `
:root {
  color-scheme: light dark;
  --ground: #fafaf9; --surface: #ffffff; --text: #1c1917; --muted: #57534e; --line: #d6d3d1; --soft: #f0efed;
  --link: #0f766e; --focus: #0f766e;
  --fine: #166534; --fine-ground: #dcfce7; --warning: #8a3b0c; --warning-ground: #fef3c7;
  --problem: #991b1b; --problem-ground: #fee2e2;
  --bar: #0f766e; --bar-client: #b45309; --bar-server: #b91c1c; --p50: #0f766e; --p95: #b45309; --p99: #b91c1c;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #1c1917; --surface: #262220; --text: #f5f5f4; --muted: #b5afaa; --line: #4a4541; --soft: #35302d;
    --link: #5eead4; --focus: #5eead4;
    --fine: #bbf7d0; --fine-ground: #14532d; --warning: #fde68a; --warning-ground: #713f12;
    --problem: #fecaca; --problem-ground: #7f1d1d;
    --bar: #2dd4bf; --bar-client: #fbbf24; --bar-server: #f87171; --p50: #2dd4bf; --p95: #fbbf24; --p99: #f87171;
  }
}
*, ::before, ::after { box-sizing: border-box }
html { -webkit-text-size-adjust: 100%; scrollbar-gutter: stable }
body { margin: 0; background: var(--ground); color: var(--text); font: 15px/1.5 system-ui, sans-serif }
header, main, footer { max-width: 78rem; margin: 0 auto; padding: 0 1.5rem }
a { color: var(--link); text-underline-offset: .15em }
:focus-visible { outline: 2px solid var(--focus); outline-offset: 2px; border-radius: 2px }
main:focus { outline: none }
.skip { position: absolute; left: -100vw; top: 0; background: var(--surface); padding: .6rem 1rem; z-index: 1 }
.skip:focus { left: 0 }
.unseen { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); white-space: nowrap }
[hidden] { display: none !important }

header { display: flex; flex-wrap: wrap; align-items: center; gap: 0 2rem; padding-top: .5rem; min-height: 3.5rem }
.brand { margin: 0; font-weight: 650 }
.brand a { color: inherit; text-decoration: none }
.brand span { font-weight: 400; color: var(--muted) }
nav ul { display: flex; flex-wrap: wrap; gap: 0 .25rem; list-style: none; margin: 0; padding: 0 }
nav a { display: block; padding: .6rem .65rem; color: var(--muted); text-decoration: none; border-bottom: 2px solid transparent }
nav a:hover { color: var(--text); border-color: var(--line) }
nav a[aria-current] { color: var(--text); border-color: var(--link); font-weight: 600 }
#live { display: flex; align-items: center; gap: .75rem; margin-left: auto; color: var(--muted); font-size: 13px }
#live p { margin: 0 }
#live-state { font-weight: 600; color: var(--fine) }
#live.paused #live-state { color: var(--muted) }
#live.failed #live-state { color: var(--problem); background: var(--problem-ground); padding: .15rem .5rem; border-radius: 4px }
#live-time { font-variant-numeric: tabular-nums }
#live.failed #live-time { display: none }
.stale main { filter: grayscale(1) }

main { padding-top: .75rem; padding-bottom: 2rem }
h1 { font-size: 1.5rem; line-height: 1.25; margin: .5rem 0 1.25rem; overflow-wrap: anywhere }
h2 { font-size: 1.1rem; margin: 0 0 .75rem }
h3 { font-size: .95rem; margin: 0 }
section { margin: 2rem 0 0 }
p { margin: .4rem 0; max-width: 70ch }
small, .about { color: var(--muted); font-size: 13px }
.empty, .none { color: var(--muted) }
footer { color: var(--muted); font-size: 13px; padding-bottom: 1.5rem }
footer p { border-top: 1px solid var(--line); padding-top: .75rem; max-width: none }
code, .id { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; unicode-bidi: isolate; overflow-wrap: anywhere }
time { white-space: nowrap; font-variant-numeric: tabular-nums }
time span { white-space: nowrap }
a.id { text-underline-offset: .35em }
pre { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; background: var(--soft); padding: .75rem; margin: .5rem 0; border-radius: 6px; white-space: pre-wrap; overflow-wrap: anywhere }

.tiles { display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .75rem; margin: 0 }
.tile { background: var(--surface); border: 1px solid var(--line); border-left-width: 4px; border-radius: 6px; padding: .65rem .85rem }
.tile dt { color: var(--muted); font-size: 13px }
.tile dd { margin: 0; font-size: 1.5rem; line-height: 1.3; font-weight: 600; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.tile dd.about { font-size: 13px; font-weight: 400 }
.tile.warning { border-left-color: var(--bar-client) }
.tile.problem { border-left-color: var(--bar-server) }
.tile.problem dd:not(.about) { color: var(--bar-server) }

.badge { display: inline-block; padding: 0 .5rem; border-radius: 4px; font-size: 13px; font-weight: 600; white-space: nowrap; background: var(--soft); color: var(--muted) }
.badge.fine { background: var(--fine-ground); color: var(--fine) }
.badge.warning { background: var(--warning-ground); color: var(--warning) }
.badge.problem { background: var(--problem-ground); color: var(--problem) }
.note { border-left: 4px solid var(--line); background: var(--soft); padding: .6rem .85rem; border-radius: 0 6px 6px 0 }
.note.problem { border-color: var(--bar-server); background: var(--problem-ground); color: var(--problem) }
.note.warning { border-color: var(--bar-client); background: var(--warning-ground); color: var(--warning) }
.note.fine { border-color: var(--bar); background: var(--fine-ground); color: var(--fine) }

.scroll { overflow-x: auto; border: 1px solid var(--line); border-radius: 6px; background: var(--surface) }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .45rem .75rem; border-bottom: 1px solid var(--line); font-weight: 400 }
tbody tr:last-child > * { border-bottom: 0 }
thead th { color: var(--muted); font-size: 13px; font-weight: 600; white-space: nowrap }
thead th a { color: inherit }
th[aria-sort] a { color: var(--text) }
th[aria-sort=descending] a::after { content: " ↓" }
th[aria-sort=ascending] a::after { content: " ↑" }
tbody tr:hover { background: var(--soft) }
.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
td small, th small { display: block; white-space: nowrap }
td .text { max-width: 26rem; min-width: 12rem; overflow-wrap: anywhere; display: -webkit-box; -webkit-box-orient: vertical; -webkit-line-clamp: 3; overflow: hidden }
td .id, th .id { display: inline-block; min-width: 9rem; max-width: 21rem }

dl { margin: 0 }
dl > div:not(.tile) { display: grid; grid-template-columns: minmax(8rem, 14rem) 1fr; gap: 0 1rem; padding: .4rem 0; border-bottom: 1px solid var(--line) }
dl > div:not(.tile) > dt { color: var(--muted) }
dl > div:not(.tile) > dd { margin: 0; overflow-wrap: anywhere }

.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem; margin-top: .75rem }
figure { margin: 0; background: var(--surface); border: 1px solid var(--line); border-radius: 6px; padding: .75rem .85rem; min-width: 0 }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between; gap: 0 1rem }
.legend { display: flex; gap: .9rem; list-style: none; margin: 0; padding: 0; font-size: 13px; color: var(--muted) }
.legend li::before { content: ""; display: inline-block; width: .7rem; height: .7rem; margin-right: .35rem; border-radius: 2px; background: var(--bar) }
.legend .client::before { background: var(--bar-client) }
.legend .server::before { background: var(--bar-server) }
.legend .p50::before, .legend .p95::before, .legend .p99::before { height: .2rem; vertical-align: .2rem; background: var(--p50) }
.legend .p95::before { background: var(--p95) }
.legend .p99::before { background: var(--p99) }
.plot { position: relative; margin-top: .6rem; padding-left: 3.6rem }
.plot svg { display: block; width: 100%; height: 9rem; overflow: visible }
.axis { position: absolute; left: 0; top: -.4rem; bottom: -.4rem; width: 3.2rem; display: flex; flex-direction: column; justify-content: space-between; text-align: right; font-size: 12px; line-height: .8rem; color: var(--muted); white-space: nowrap }
.grid { stroke: var(--line); stroke-width: 1; fill: none; vector-effect: non-scaling-stroke }
rect.fine { fill: var(--bar) }
rect.client { fill: var(--bar-client) }
rect.server { fill: var(--bar-server) }
.line { fill: none; stroke-width: 2; stroke-linejoin: round; vector-effect: non-scaling-stroke }
.line.p50 { stroke: var(--p50) }
.line.p95 { stroke: var(--p95); stroke-dasharray: 7 3 }
.line.p99 { stroke: var(--p99); stroke-dasharray: 2 3 }
.times { display: flex; justify-content: space-between; margin: .25rem 0 .4rem 3.6rem; max-width: none; font-size: 12px; color: var(--muted) }
summary { cursor: pointer; color: var(--muted); font-size: 13px; width: fit-content }
figure .scroll { max-height: 16rem; overflow: auto; margin-top: .5rem }

form.filter { display: flex; flex-wrap: wrap; align-items: end; gap: .75rem; margin: 0 0 1rem }
label { display: block; font-size: 13px; color: var(--muted) }
input, select, button, .button { font: inherit; color: var(--text); background: var(--surface); border: 1px solid var(--muted); border-radius: 6px; padding: .4rem .65rem; min-height: 2.4rem; max-width: 100% }
input { width: 18rem }
button, .button { cursor: pointer; font-weight: 600; display: inline-flex; align-items: center; text-decoration: none }
button:hover, .button:hover { background: var(--soft) }
#live button { min-height: 2rem; padding: .1rem .65rem; font-size: 13px; border-color: var(--line) }
.button.main, button.main { background: var(--link); border-color: var(--link); color: var(--surface) }
.button.main:hover, button.main:hover { filter: brightness(1.1) }
form.confirm { display: grid; gap: 1rem; justify-items: start; margin-top: 1.25rem }
.actions { display: flex; flex-wrap: wrap; gap: .75rem; align-items: center; margin: 1rem 0 }
.tabs { display: flex; flex-wrap: wrap; gap: .5rem; list-style: none; margin: 0 0 1rem; padding: 0 }
.tabs a { display: block; padding: .3rem .75rem; border: 1px solid var(--line); border-radius: 999px; text-decoration: none; color: var(--text); background: var(--surface) }
.tabs a:hover { border-color: var(--muted) }
.tabs a[aria-current] { border-color: var(--link); box-shadow: inset 0 0 0 1px var(--link); font-weight: 600 }
.more { margin-top: 1rem }

@media (max-width: 45rem) {
  header, main, footer { padding-left: 1rem; padding-right: 1rem }
  header { gap: 0 1rem }
  nav { order: 3; width: 100%; overflow-x: auto }
  nav ul { flex-wrap: nowrap }
  nav a { white-space: nowrap; padding: .7rem .6rem }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem }
  .tile dd { font-size: 1.25rem }
  dl > div:not(.tile) { grid-template-columns: 1fr }
  form.filter > div, input, select { width: 100% }
  th, td { padding: .45rem .6rem }
  td time { white-space: normal }
  td .text { min-width: 9rem }
  td .id, th .id { min-width: 7rem; max-width: 12rem }
}
@media print {
  nav, #live, .skip, form, .actions, .more { display: none }
  body { background: #fff; color: #000 }
  .scroll { overflow: visible }
}
`.trimStart()
