/** The file of the groups, and what becomes of ids in a map. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, it as test, layer } from "@effect/vitest"
import { Effect, FileSystem, Redacted } from "effect"
import { read } from "../../../scripts/scale/maps/Groups.ts"
import { hashOf } from "../../../scripts/scale/maps/Owners.ts"
import { json } from "../../support/Client.ts"

const database = "postgres://maps:secret@10.0.1.10/practice"
const groups = { group_a: { database } }
const not = (place: string) => `FILE is not what groups.json should be: ${place}`

const reading = Effect.fnUntraced(function* (content: unknown) {
  const path = join(yield* (yield* FileSystem.FileSystem).makeTempDirectoryScoped(), "groups.json")
  writeFileSync(path, json(content))
  return yield* Effect.mapError(read(path), ({ message }) => message.replace(path, "FILE"))
})

layer(NodeServices.layer)("groups.json", (it) => {
  it.effect("has a database for each group, and organizations that are being moved", () =>
    Effect.gen(function* () {
      const found = yield* reading({ groups, moving: { "org 7": "group_a" } })
      assert.deepStrictEqual(found.groups["group_a"]?.database, Redacted.make(database))
      assert.deepStrictEqual(found.moving, { "org 7": "group_a" })
    })
  )

  it.effect.each<readonly [content: unknown, expected: string]>([
    [{ groups: {} }, "FILE names no group"],
    [{ groups: { group_a: {} } }, not("groups.group_a.database")],
    [{ groups: { "group a": { database } } }, not("groups.group a")],
    [{ groups, movng: {} }, not("movng")],
    [{ groups, moving: { org_7: "group_b" } }, "FILE: moving names the group group_b, which is none of its groups"]
  ])("is refused by its place, without a password: %j", ([content, expected]) =>
    Effect.map(Effect.flip(reading(content)), (refused) => assert.strictEqual(refused, expected))
  )
})

test("The hash of an organization is of the bytes of a header, where a header can have them", () => {
  // printf org_oakridge | sha256sum
  assert.strictEqual(hashOf("org_oakridge"), "C1183DCE5C121AF98C51E0D7EC8EBBBE033CCAD1F6931B4E6652B49A7B578DFE")
  // printf 'org_\xe9' | sha256sum
  assert.strictEqual(hashOf("org_é"), "8A48B32D825838C02C81D367D071DC5EC96469C6EE2990C76D8E51F2DAE6D325")
  for (const id of ["", " org", "org\t", "org\n7", "org_ł", "org_\u{1f415}"]) assert.isUndefined(hashOf(id), id)
})
