/** How times are read as texts. */

/** A column of times as the API writes them: UTC, with milliseconds. It keeps its name. */
export const isoTime = (column: string) =>
  `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') as ${column.slice(column.indexOf(".") + 1)}`
