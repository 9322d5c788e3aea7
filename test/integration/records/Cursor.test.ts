/** Forged cursors: anybody can compute the checksum, which keeps mistakes apart. */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import { CursorInvalid } from "../../../src/api/Errors.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import * as Cursor from "../../../src/records/Cursor.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import * as Walk from "../../../src/records/Walk.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { tries } from "../../support/tries.ts"
import { asKnown } from "./stores.ts"

const owner = { organization: "org_1", resource: pets.name }

const forged = (...parts: ReadonlyArray<string | undefined>) => {
  const text = parts.join(".")
  const checksum = hash("sha256", JSON.stringify([owner.organization, owner.resource, text]), "base64url")
  return Buffer.from(text).toString("base64url") + checksum.slice(0, 8)
}

const forgery = Schema.Struct({
  version: Schema.Literals(["1", "2"]),
  isOfHere: Schema.Boolean,
  numbers: Schema.Array(Schema.Literals(["0", "1", "-1", "2s", "zzzzzz", "zzzzzzzzzz"])).check(
    Schema.isMinLength(5),
    Schema.isMaxLength(5)
  ),
  /** The last number, or an invalid one. */
  odd: Schema.Literals(["0", "zz", "", "-", "-2", "zzzzzzzzzzz", "1e5", "A", " 1", "\0", "1.1"]),
  id: Schema.Literals(["", "a", "a.b", "\0", "a\0b", "\uFFFD", "'", "x".repeat(5000), "\u{10FFFF}"])
})

const reader = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const repository = Postgres.make(sql, pets)
  const read = (cursor?: string) =>
    asKnown(owner.organization)(repository.changes({ cursor, limit: 2, wait: Duration.millis(1) }))
  yield* sql`insert into pets (organization_id, id) values (${owner.organization}, 'a') on conflict do nothing`
  yield* settled(sql)
  const { cursor } = yield* read()
  const given = yield* Effect.fromNullishOr(Cursor.decode(cursor, owner.resource))
  return { read, cursor, given }
})

layer(TestDatabase.layer, { excludeTestServices: true })("a cursor", (it) => {
  for (const { often, options } of tries({ few: 100, many: 600 }))
    it.effect.prop(
      `that is forged is refused, expired or resumed, and never reported as a store that is down${often}`,
      { forgery },
      ({ forgery: { id, isOfHere, numbers, odd, version } }) =>
        Effect.gen(function* () {
          const { given, read } = yield* reader
          const tokens = isOfHere ? [given.order, given.mark] : ["0123abcd", "0123abcd"]
          const cursor = forged(version, ...tokens, ...numbers.slice(version === "1" ? 2 : 1), odd, id)
          const outcome = yield* Effect.match(read(cursor), {
            onSuccess: () => "resumed",
            onFailure: ({ _tag }) => _tag
          })
          assert.include(["resumed", "CursorInvalid", "CursorExpired"], outcome, cursor)
        }),
      options
    )

  it.effect("of the release before is resumed, and that release can resume ours", () =>
    Effect.gen(function* () {
      const { cursor, given, read } = yield* reader
      const { ceiling, mark, order, wal } = given
      const position = given.walks[0]?.place.position ?? 0
      const place = { position, id: "a", branch: Walk.lastBranch }
      const walks = [{ feeds: { pets: order }, place, running: [], floor: undefined, target: undefined }]
      const previous = forged(
        "1",
        order,
        mark,
        ...[0, ceiling, wal, position].map((number) => number.toString(36)),
        "a"
      )
      assert.deepStrictEqual(Cursor.decode(previous, owner.resource), { ...given, walks })
      assert.isTrue((yield* read(previous)).isComplete)
      const text = Buffer.from(cursor, "base64url").toString()
      assert.isTrue(/^[12]\./.test(text) && !text.includes("\u0001"))
    })
  )

  it.effect.each([
    "a\0",
    "\0",
    '~\u0001[{"feeds":{"pets":"x"},"place":{"position":1e300,"id":"","branch":""},"running":[]}]',
    '~\u0001[{"feeds":{"pets":"x"},"place":{"position":1,"id":"\\u0000","branch":""},"running":[]}]',
    '~\u0001[{"feeds":{"pets":"x"},"place":{"position":1,"id":"","branch":""},"running":[9e15,9e15]}]',
    "~\u0001[{}]",
    `~\u0001[${" ".repeat(128 * 1024)}]`
  ])("with U+0000, walks that no feed has given out, or a text of more than 128 KiB is refused (%#)", (walks) =>
    Effect.gen(function* () {
      const { given, read } = yield* reader
      const refused = yield* Effect.flip(read(forged("1", given.order, given.mark, "0", "0", "0", "0", walks)))
      assert.deepStrictEqual(refused, new CursorInvalid())
    })
  )
})
