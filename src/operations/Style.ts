/** The stylesheet of the operators' pages. */
import { baseStyle } from "../http/Html.ts"

/** Text has a contrast of at least 4.5 to its background, bars of at least 3. */
export const style = `${baseStyle}
header, main, footer { max-width: 78rem; margin: 0 auto; padding: .5rem 1.5rem 1.5rem }
figcaption h2 { font-size: .95rem; margin: 0 }
small, .about, summary, label, footer, .tile dt, thead th, .axis { color: var(--muted); font-size: 13px }
.id { font: var(--mono); overflow-wrap: anywhere; unicode-bidi: isolate }
time { white-space: nowrap }
time, .number, .tile dd { font-variant-numeric: tabular-nums }
:focus-visible { outline: 2px solid var(--teal); outline-offset: 2px; border-radius: 2px }
.skip { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%) }
.skip:focus { width: auto; height: auto; clip-path: none; background: var(--surface) }

header { display: flex; flex-wrap: wrap; align-items: center; gap: 0 2rem; padding-bottom: 0 }
ul { display: flex; flex-wrap: wrap; gap: 0 .5rem; list-style: none; margin: 0; padding: 0 }
.brand a { color: inherit; text-decoration: none; font-weight: 650 }
.brand span { font-weight: 400; color: var(--muted) }
header nav a { display: block; padding: .6rem .5rem; color: var(--muted); text-decoration: none; white-space: nowrap }
header nav a[aria-current] { color: var(--text); border-bottom: 2px solid var(--teal); font-weight: 600 }

.tiles { margin-top: 1.25rem; display: grid; grid-template-columns: repeat(auto-fill, minmax(15rem, 1fr)); gap: .75rem }
.tile, figure, .scroll { background: var(--surface); border: 1px solid var(--line); border-radius: 6px }
.tile { border-left-width: 4px; padding: .65rem .85rem }
.tile dd { font-size: 1.5rem; line-height: 1.3; font-weight: 600; overflow-wrap: anywhere }
.tile dd a { text-underline-offset: .15em }
.tile dd.about { font-size: 13px; font-weight: 400 }
.tile.warning { border-left-color: var(--amber) }
.tile.problem { border-left-color: var(--red) }
.tile.problem dd:not(.about) { color: var(--red) }
.badge { padding: 0 .5rem; border-radius: 4px; font-size: 13px; font-weight: 600; white-space: nowrap }
.note { border-left: 4px solid; padding: .6rem .85rem; border-radius: 0 6px 6px 0 }
.badge, .note { background: var(--soft); color: var(--muted) }
:is(.badge, .note).fine { background: light-dark(#dcfce7, #14532d); color: light-dark(#166534, #bbf7d0) }
:is(.badge, .note).warning { background: light-dark(#fef3c7, #713f12); color: light-dark(#8a3b0c, #fde68a) }
:is(.badge, .note).problem { background: light-dark(#fee2e2, #7f1d1d) }
:is(.badge, .note).problem { color: light-dark(#991b1b, #fecaca) }

.scroll { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { text-align: left; vertical-align: top; padding: .45rem .75rem; font-weight: 400 }
tr + tr > *, tbody > :first-child > * { border-top: 1px solid var(--line) }
thead th { font-weight: 600; white-space: nowrap }
.number { text-align: right; white-space: nowrap }
:is(td, th) small { display: block; white-space: nowrap }
td .text { max-width: 26rem; min-width: 9rem; max-height: 4.5em; overflow: hidden; overflow-wrap: anywhere }
td .text { display: inline-block }
:is(td, th) .id { display: inline-block; min-width: 7rem; max-width: 21rem }
dl, dd { margin: 0 }
.pair { display: grid; grid-template-columns: minmax(8rem, 14rem) 1fr; gap: 0 1rem; padding: .4rem 0 }
.pair + .pair { border-top: 1px solid var(--line) }
.empty, .pair dt { color: var(--muted) }
.pair dd { overflow-wrap: anywhere }

.charts { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr)); gap: 1.25rem }
figure { margin: 0; padding: .75rem .85rem; min-width: 0 }
figcaption { display: flex; flex-wrap: wrap; justify-content: space-between }
.teal { color: var(--teal) }
.amber { color: var(--amber) }
.red { color: var(--red) }
.legend li::before { content: "■ " }
.plot { position: relative; margin: .6rem 0 .8rem 4.6rem }
.plot svg { display: block; width: 100%; height: 9rem }
.axis { position: absolute; right: calc(100% + .4rem); top: -.6rem; bottom: -.6rem; white-space: nowrap }
.axis { text-align: right; display: flex; flex-direction: column; justify-content: space-between }
path { stroke: currentColor }
.grid { color: var(--line); vector-effect: non-scaling-stroke }
summary { cursor: pointer }
figure .scroll { max-height: 16rem; overflow: auto }

form { display: flex; flex-wrap: wrap; align-items: end; gap: .75rem; margin: 1rem 0; max-width: none }
label { display: block }
input, select, button, .button { font: inherit; color: var(--text); background: var(--surface); max-width: 100% }
input, select, button, .button { border: 1px solid var(--muted); border-radius: 6px; min-height: 2.4rem; padding: .4rem .65rem }
input { width: 18rem }
button, .button { cursor: pointer; font-weight: 600; text-decoration: none }


@media (max-width: 45rem) {
  header, main, footer { padding-left: 1rem; padding-right: 1rem }
  header nav { order: 3; width: 100%; overflow-x: auto }
  header nav ul { flex-wrap: nowrap }
  .tiles { grid-template-columns: repeat(2, minmax(0, 1fr)); gap: .5rem }
  .tile dd { font-size: 1.25rem }
  .pair { grid-template-columns: 1fr }
  form > div, input, select { width: 100% }
  :is(td, th) .id { max-width: 12rem }
}
`
