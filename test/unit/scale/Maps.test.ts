/** The file of the groups, and what becomes of ids in a map. */
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { assert, layer } from "@effect/vitest"
import { Effect, FileSystem, Redacted } from "effect"
import { read } from "../../../scripts/scale/maps/Groups.ts"
import { json } from "../../support/Client.ts"
import { hashOf } from "../../../scripts/scale/maps/Owners.ts"

const reading = Effect.fnUntraced(function* (text: string) {
  const fs = yield* FileSystem.FileSystem
  const path = join(yield* fs.makeTempDirectoryScoped(), "groups.json")
  writeFileSync(path, text)
  const refused = Effect.map(Effect.flip(read(path)), ({ message }) => message.replace(path, "FILE"))
  return { found: read(path), refused }
})

const database = "postgres://maps:secret@10.0.1.10/practice"

const group = { group_a: { database } }

const not = (place: string) => `FILE is not what groups.json should be: ${place}`

layer(NodeServices.layer)("groups.json", (it) => {
  it.effect("has a database for each group, and organizations that are being moved", () =>
    Effect.gen(function* () {
      const { found } = yield* reading(json({ groups: { group_a: { database } }, moving: { "org 7": "group_a" } }))
      const { groups, moving } = yield* found
      assert.deepStrictEqual(Object.keys(groups), ["group_a"])
      assert.deepStrictEqual(groups["group_a"]?.database, Redacted.make(database))
      assert.deepStrictEqual(moving, { "org 7": "group_a" })
    })
  )

  it.effect.each<readonly [text: string, expected: string]>([
    [`{"groups":{"group_a":{"database":"${database}"}`, not("the file as a whole")],
    ["[]", not("the file as a whole")],
    [`{"groups":{}}`, "FILE names no group"],
    [`{"groups":{"group_a":{}}}`, not("groups.group_a.database")],
    [`{"groups":{"a":{"database":5}}}`, not("groups.a.database")],
    [json({ groups: { "group a": { database } } }), not("groups.group a")],
    [json({ groups: group, movng: {} }), not("movng")],
    [
      json({ groups: group, moving: { org_7: "group_b" } }),
      "FILE: moving names the group group_b, which is none of its groups"
    ]
  ])("is refused by its place, without a password: %s", ([text, expected]) =>
    Effect.gen(function* () {
      const { refused } = yield* reading(text)
      assert.strictEqual(yield* refused, expected)
    })
  )

  it.effect("is refused when it is not there", () =>
    Effect.gen(function* () {
      assert.match((yield* Effect.flip(read("/nowhere/groups.json"))).message, /nowhere/)
    })
  )
})

layer(NodeServices.layer)("The hash of an organization", (it) => {
  it.effect("is of the bytes of a header, where a header can have them", () =>
    Effect.sync(() => {
      // printf org_oakridge | sha256sum
      assert.strictEqual(hashOf("org_oakridge"), "C1183DCE5C121AF98C51E0D7EC8EBBBE033CCAD1F6931B4E6652B49A7B578DFE")
      // printf 'org_\xe9' | sha256sum
      assert.strictEqual(hashOf("org_é"), "8A48B32D825838C02C81D367D071DC5EC96469C6EE2990C76D8E51F2DAE6D325")
      for (const id of ["", " org", "org\t", "org\n7", "org_ł", "org_\u{1f415}"]) assert.isUndefined(hashOf(id), id)
    })
  )
})
