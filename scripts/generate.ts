/** Writes `src/operations/DICTIONARY.md`: the columns of each table of records, by the comments of the schema. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import type { PgClient } from "@effect/sql-pg"
import { Array, Effect, Schema } from "effect"
import { Reactivity } from "effect/reactivity"
import { decodeRows } from "../src/database/Columns.ts"
import * as Embedded from "../src/database/Embedded.ts"
import { migrate } from "../src/database/Migrations.ts"

/** A table of Markdown, with a heading row first, as the formatter aligns it. */
const tableOf = (...rows: ReadonlyArray<ReadonlyArray<string>>) => {
  const cells = rows.map((row) => row.map((cell) => cell.replaceAll("|", "\\|")))
  const widths = (cells[0] ?? []).map((_, at) => Math.max(...cells.map((row) => (row[at] ?? "").length)))
  const lines = cells.map((row) => `| ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join(" | ")} |`)
  return lines.toSpliced(1, 0, `| ${widths.map((width) => "-".repeat(width)).join(" | ")} |`).join("\n")
}

const Column = Schema.Struct({
  table: Schema.String,
  of: Schema.String,
  name: Schema.String,
  type: Schema.String,
  comment: Schema.String
})
type Column = typeof Column.Type

const columnsTable = (columns: ReadonlyArray<Column>) =>
  tableOf(["column", "type", "meaning"], ...columns.map(({ comment, name, type }) => [`\`${name}\``, type, comment]))

const introduction = `# The columns of the tables of records

For those who write records with SQL: [how](README.md#your-own-postgres). \`npm run generate\` writes this page from the comments of the schema.

A constraint that refuses a value has a name that says the column and the reason, such as \`total_at_most_15_digits\`. "Not shown" is not a field of the API.

## Every table

The primary key is \`organization_id\`, \`id\`. \`clinics\` has no time of the last change; that of \`products\` is \`modified_at\`.`

/** The text of the page. */
const dictionary = (sql: PgClient.PgClient) =>
  Effect.map(
    decodeRows(Column)(sql`
      select c.relname as table, obj_description(c.oid, 'pg_class') as of, a.attname as name,
        replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz')
          || case when d.oid is not null then ', ' || pg_get_expr(d.adbin, d.adrelid) || ' by default' else '' end as type,
        coalesce(col_description(c.oid, a.attnum), '') as comment
      from change_feeds f join pg_class c on c.oid = f.table_name::regclass
      join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
      left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
      order by c.relname, a.attnum`),
    (columns) => {
      const isCommon = ({ comment, name }: Column) =>
        columns.filter((other) => other.name === name && other.comment === comment).length > 10
      const common = Array.dedupeWith(columns.filter(isCommon), (a, b) => a.name === b.name)
      const parts = Object.entries(Array.groupBy(columns, ({ table }) => table)).map(
        ([table, [first, ...rest]]) =>
          `## ${table}\n\n${first.of}.\n\n${columnsTable([first, ...rest].filter((column) => !isCommon(column)))}`
      )
      return `${[introduction, columnsTable(common), ...parts].join("\n\n")}\n`
    }
  )

Effect.gen(function* () {
  const sql = yield* Embedded.connect("memory")
  yield* migrate(sql)
  writeFileSync(join(import.meta.dirname, "../src/operations/DICTIONARY.md"), yield* dictionary(sql))
}).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]), NodeRuntime.runMain)
