/** The statements of the guide for feeders, as they stand there: a source in another database, a first load, and upserts. */
import { assert, layer } from "@effect/vitest"
import { Effect } from "effect"
import { snippetsOf } from "../../support/snippets.ts"
import { asPsql, newLogin, TestDatabase } from "../../support/TestDatabase.ts"

const statements = snippetsOf("src/operations/FEEDING.md").filter(({ language }) => language === "sql")
const [foreign = "", view = "", firstLoad = "", upsert = ""] = statements.map(({ code }) => code)

const source = `
  create table clinics (no int, zone text);
  insert into clinics values (1, 'America/Denver');
  create table invoices (number int, clinic_no int, customer_no int, issued_local timestamp, state text, total_cents int,
    removed_utc timestamptz, created_utc timestamptz, changed_utc timestamptz);
  insert into invoices select n, 1, n, '2024-07-01 09:30', 'paid', 100 * n, case when n = 3 then timestamptz '2024-08-01Z' end,
    '2024-07-01Z', '2024-08-01Z' from generate_series(1, 3) n;`

layer(TestDatabase.layer, { excludeTestServices: true })("the statements for feeders", (it) => {
  it.effect("load a source in another database once, and then what has changed in it", () =>
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const legacy = Object.assign(new URL(url), { pathname: `${new URL(url).pathname}_legacy` })
      const database = legacy.pathname.slice(1)
      yield* Effect.acquireRelease(sql.unsafe(`create database ${database}`), () =>
        Effect.orDie(sql.unsafe(`drop database ${database} with (force)`))
      )
      yield* asPsql(legacy.href, source)
      const { name, url: loader } = yield* newLogin("writer")
      yield* sql`insert into organizations (organization_id, id) values ('org_1', 'org_1')`
      const own = foreign
        .replace("old.example", legacy.hostname)
        .replace("5432", legacy.port)
        .replace("'clinics'", `'${database}'`)
        .replace("'reader'", `'${legacy.username}'`)
        .replace("'...'", `'${legacy.password}'`)
      yield* asPsql(url, own + view.replaceAll("to loader", `to ${name}`))
      const rows = Effect.map(
        sql`
          select concat_ws(' ', id, status, trim_scale(total), is_deleted) as row, created_at < '2025-01-01' as is_old,
            updated_at = '2024-08-01Z' as is_kept, invoice_date = '2024-07-01T15:30Z' as is_local
          from invoices order by id`,
        (all) => all.map((each) => Object.values(each).join(" "))
      )
      yield* asPsql(loader, firstLoad)
      const loaded = ["inv-1 paid 1 f", "inv-2 paid 2 f", "inv-3 paid 3 t"]
      assert.deepStrictEqual(
        yield* rows,
        loaded.map((row) => `${row} true true true`)
      )
      yield* asPsql(legacy.href, "update invoices set state = 'void', changed_utc = now() where number = 2")
      yield* asPsql(loader, upsert)
      yield* asPsql(loader, `update source.watermarks set until = '-infinity'; ${upsert}`)
      assert.deepStrictEqual(yield* rows, [
        "inv-1 paid 1 f true true true",
        "inv-2 void 2 f true false true",
        "inv-3 paid 3 t true true true"
      ])
    })
  )
})
