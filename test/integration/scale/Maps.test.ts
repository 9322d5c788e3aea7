/**
 * The maps of haproxy from the databases of two groups, and the documented move of an organization between them.
 *
 * @module-tag long
 */
import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it } from "@effect/vitest"
import { Context, Effect, Layer } from "effect"
import { hashOf, writeMaps } from "../../../scripts/scale/groups.ts"
import { json } from "../../support/Client.ts"
import { temporaryFolder } from "../../support/Process.ts"
import { succeed } from "../../support/run.ts"
import { snippetsOf } from "../../support/snippets.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { folderWith } from "../../support/Tools.ts"

const copying = snippetsOf("scripts/scale/README.md").find(({ code }) => code.includes("psql -At"))?.code ?? "exit 1"

const installation = folderWith("bin/psql")

/** Copies the rows of an organization by the documented commands. */
const copyRows = (from: string, to: string, organization: string) => {
  // Debian's psql in /usr/bin is a script that looks for the real one, which takes longer.
  const script = `PATH='${installation}/bin':$PATH\n${copying.replaceAll("org_7", organization)}`
  return succeed("bash", ["-ec", script], { cwd: "/", env: { ...process.env, A: from, B: to } })
}

/** A database with the demo data of one organization. */
const groupOf = Effect.fnUntraced(function* (organization: string) {
  const { sql, url } = Context.get(yield* Layer.build(Layer.fresh(TestDatabase.layerDemo)), TestDatabase)
  const tables = yield* sql<{ name: string }>`
    select table_name as name from information_schema.columns natural join information_schema.tables
    where table_type = 'BASE TABLE' and table_schema = 'public' and column_name = 'organization_id'`
  const deleteOf = (of: string) =>
    Effect.forEach(tables, ({ name }) => sql`delete from ${sql(name)} where organization_id = ${of}`)
  yield* deleteOf(organization === "org_harbor" ? "org_oakridge" : "org_harbor")
  const invoices = sql<{ record: string }>`select record from invoices where organization_id = 'org_harbor' order by id`
  return { sql, url, deleteOf, invoices }
})

it.live.skipIf(installation === undefined)(
  "Keys and organizations map to their group; one in two groups is refused",
  () =>
    Effect.gen(function* () {
      const [a, b] = [yield* groupOf("org_oakridge"), yield* groupOf("org_harbor")]
      const folder = yield* temporaryFolder
      const file = join(folder, "groups.json")
      const groups = { group_a: { database: a.url }, group_b: { database: b.url } }
      const maps = (moving: object = {}) =>
        Effect.suspend(() => {
          writeFileSync(file, json({ groups, moving }))
          return writeMaps(file, folder)
        })
      const groupsIn = (name: string) =>
        readFileSync(join(folder, `${name}.map`), "utf8")
          .split("\n")
          .flatMap((line) => line.split(" ").slice(1))
          .toSorted()
      const isMapped = (of: string) =>
        assert.include(readFileSync(join(folder, "organizations.map"), "utf8"), `${hashOf("org_harbor")} ${of}\n`)

      assert.deepStrictEqual(yield* maps(), { keys: 2, organizations: 2 })
      for (const name of ["keys", "organizations"]) assert.deepStrictEqual(groupsIn(name), ["group_a", "group_b"], name)
      isMapped("group_b")

      yield* copyRows(b.url, a.url, "org_harbor")
      assert.deepStrictEqual(yield* a.invoices, yield* b.invoices)
      const { message } = yield* Effect.flip(maps())
      assert.strictEqual(message, "Organizations that are in two groups: org_harbor (group_a, group_b)")
      isMapped("group_b")
      yield* maps({ org_harbor: "group_a" })
      assert.deepStrictEqual(groupsIn("keys"), ["group_a", "group_a"])
      isMapped("moving")

      yield* b.deleteOf("org_harbor")
      yield* a.sql`update api_keys set revoked_at = now() where organization_id = 'org_harbor'`
      assert.deepStrictEqual(yield* maps(), { keys: 1, organizations: 2 })
      isMapped("group_a")
    }).pipe(Effect.scoped, Effect.provide(NodeServices.layer))
)
