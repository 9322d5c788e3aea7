/** Writes `src/operations/DICTIONARY.md`: the columns of each table of records, with the descriptions of their fields. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { NodeRuntime, NodeServices } from "@effect/platform-node"
import { Array, Effect, Order, Schema, SchemaAST } from "effect"
import { Reactivity } from "effect/reactivity"
import { columnName } from "../src/api/records/Field.ts"
import { resources } from "../src/api/records/index.ts"
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

const Column = Schema.Struct({ table: Schema.String, name: Schema.String, type: Schema.String })

const introduction = `# The columns of the tables of records

For those who write records with SQL: [how](README.md#your-own-postgres). \`npm run generate\` writes this page from the tables and the fields of the API.

A constraint that refuses a value has a name that says the column and the reason, such as \`total_at_most_15_digits\`.

## Every table

The primary key is \`organization_id\`, \`id\`. The database writes \`updated_at\` (of \`products\`, \`modified_at\`; \`clinics\` has none), unless practice_data.keep_times is on, and always \`record\`, the record as JSON, and \`change_position\`, its place in the order of changes. \`created_at\` is yours, and now by default; so are \`is_deleted\` and \`deleted_at\`, but a deletion of the intake stays. A column that refers to another record holds its \`id\`.`

/** The description of a value, which may be null. */
const describe = (ast: SchemaAST.AST): string => {
  const described = SchemaAST.resolveDescription(ast) ?? ast.annotations?.["description"]
  if (typeof described === "string") return described
  return SchemaAST.isUnion(ast) ? ast.types.map(describe).join("") : ""
}

/** The meanings of the columns of an object's fields, by their names. */
const meanings = (ast: SchemaAST.AST, prefix = ""): ReadonlyArray<readonly [column: string, meaning: string]> =>
  !SchemaAST.isObjects(ast)
    ? []
    : ast.propertySignatures.flatMap(({ name, type }) => {
        const column = `${prefix}${columnName(String(name))}`
        return [[column, describe(type)], ...meanings(type, `${column}_`)]
      })

const written = ["organization_id", "created_at", "updated_at", "modified_at", "record", "change_position"]

Effect.gen(function* () {
  const sql = yield* Embedded.connect("memory")
  yield* migrate(sql)
  const columns = yield* decodeRows(Column)(sql`
    select c.relname as table, a.attname as name,
      replace(format_type(atttypid, atttypmod), 'timestamp with time zone', 'timestamptz')
        || case when d.oid is not null then ', ' || pg_get_expr(d.adbin, d.adrelid) || ' by default' else '' end as type
    from change_feeds f join pg_class c on c.oid = f.table_name::regclass
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    order by a.attnum`)
  const parts = resources.map(({ hidden, record, table }) => {
    const shown = new Map(meanings(SchemaAST.toEncoded(record.ast)))
    const others = new Map(meanings(SchemaAST.toEncoded(Schema.Struct(hidden).ast)))
    const rows = columns.filter((column) => column.table === table && !written.includes(column.name))
    const texts = rows.map(({ name, type }) => {
      return [`\`${name}\``, type, shown.get(name) ?? `${others.get(name) ?? ""} Not shown.`]
    })
    return `## ${table}\n\n${describe(record.ast)}\n\n${tableOf(["column", "type", "meaning"], ...texts)}`
  })
  const file = join(import.meta.dirname, "../src/operations/DICTIONARY.md")
  writeFileSync(file, `${[introduction, ...Array.sort(parts, Order.String)].join("\n\n")}\n`)
}).pipe(Effect.scoped, Effect.provide([NodeServices.layer, Reactivity.layer]), NodeRuntime.runMain)
