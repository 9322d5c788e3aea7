/** A copy in a folder of NDJSON: a file for each resource, to which changes are appended. The last line of a record counts. */
import { Predicate } from "effect"
import * as Files from "./Files.ts"
import * as FolderTarget from "./FolderTarget.ts"
import { quoteName } from "./SqlCopy.ts"
import type { Table } from "./Table.ts"

/** The characters that are written at once. */
const most = 262_144

/** The lines of ids, with the JSON of their records; null for a removed one. */
function* linesOf(rows: Iterable<Readonly<Record<string, unknown>>>) {
  let lines = ""
  for (const { id, record } of rows) {
    lines += Predicate.isString(record)
      ? `{"op":"upsert","record":${record}}\n`
      : `${JSON.stringify({ op: "remove", id })}\n`
    if (lines.length < most) continue
    yield lines
    lines = ""
  }
  yield lines
}

/**
 * The target of a folder, which is made if there is none.
 *
 * @param compact replaces a file that has changed by one with a line for each record
 */
export const make = (given: string, compact: boolean) =>
  FolderTarget.make(given, {
    kind: "ndjson",
    write: (file, database, { name }) => {
      const rows = database.prepare(`select id, record from ${quoteName(name)} order by id`)
      Files.writeAt(file, 0, linesOf(rows.iterate()))
    },
    ...(!compact && {
      append: (file: string, position, database, { name, resource }: Table) => {
        const rows = database.prepare(
          `select distinct changed.id, record from ${FolderTarget.changedTable} changed
           left join ${quoteName(name)} copied on copied.id = changed.id where resource = ?`
        )
        return Files.writeAt(file, position, linesOf(rows.iterate(resource)))
      }
    })
  })
