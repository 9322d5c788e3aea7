/** A bar chart as SVG: for each group of bars, how much of each contender there is, the longest bar in full width. */

export interface Bars {
  readonly title: string
  readonly bars: ReadonlyArray<{ readonly label: string; readonly value: number }>
}

const colours = ["#0b7285", "#adb5bd", "#868e96", "#ced4da", "#dee2e6"]
const [width, left, right, row, gap] = [760, 130, 90, 18, 34]

const escape = (text: string) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;")

const round = (value: number) => (value >= 100 ? Math.round(value).toLocaleString("en") : value.toPrecision(3))

/** Draws the chart. */
export const chart = (caption: string, unit: string, groups: ReadonlyArray<Bars>): string => {
  let y = 44
  const drawn = groups.map(({ title, bars }) => {
    const longest = Math.max(...bars.map(({ value }) => value))
    const heading = `<text x="10" y="${y + 12}" font-weight="600">${escape(title)}</text>`
    y += 22
    const lines = bars.map(({ label, value }, index) => {
      const length = ((width - left - right) * value) / longest
      const line =
        `<text x="${left - 8}" y="${y + 13}" text-anchor="end">${escape(label)}</text>` +
        `<rect x="${left}" y="${y + 2}" width="${length.toFixed(1)}" height="${row - 4}" fill="${colours[index % colours.length]}"/>` +
        `<text x="${(left + length + 6).toFixed(1)}" y="${y + 13}">${round(value)}</text>`
      y += row
      return line
    })
    y += gap - row
    return [heading, ...lines].join("\n")
  })
  return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${y}" viewBox="0 0 ${width} ${y}" font-family="system-ui, sans-serif" font-size="12" fill="#212529">
<rect width="100%" height="100%" fill="#fff"/>
<text x="10" y="20" font-size="14" font-weight="600">${escape(unit)}</text>
<text x="10" y="36" fill="#495057">${escape(caption)}</text>
${drawn.join("\n")}
</svg>
`
}
