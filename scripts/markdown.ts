/** A table of Markdown, with a heading row first, as the formatter aligns it. */
export const tableOf = (...rows: ReadonlyArray<ReadonlyArray<string>>) => {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll("|", "\\|")))
  const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => (row[at] ?? "").length)))
  const lines = cells.map((row) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`)
  return lines.toSpliced(1, 0, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`).join("\n")
}
