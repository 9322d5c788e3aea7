/** Cursors that nobody gave out: the checksum keeps mistakes apart, and can be computed by anybody. */
import { hash } from "node:crypto"
import { assert, layer } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import { CurrentOrganization } from "../../../src/api/CurrentOrganization.ts"
import { CursorInvalid } from "../../../src/api/Errors.ts"
import { pets } from "../../../src/api/records/Pets.ts"
import * as Cursor from "../../../src/records/Cursor.ts"
import * as Postgres from "../../../src/records/Postgres.ts"
import { settled } from "../../support/settled.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { tries } from "../../support/tries.ts"

const owner = { organization: "org_1", resource: pets.name }

const forged = (text: string) =>
  Buffer.from(text).toString("base64url") +
  hash("sha256", JSON.stringify([owner.organization, owner.resource, text]), "base64url").slice(0, 8)

const forgery = Schema.Struct({
  version: Schema.Literals(["1", "2"]),
  isOfHere: Schema.Boolean,
  numbers: Schema.Array(Schema.Literals(["0", "1", "-1", "2s", "zzzzzz", "zzzzzzzzzz"])).check(
    Schema.isMinLength(5),
    Schema.isMaxLength(5)
  ),
  /** The last number, or what is none. */
  odd: Schema.Literals(["0", "zz", "", "-", "-2", "zzzzzzzzzzz", "1e5", "A", " 1", "\0", "1.1"]),
  id: Schema.Literals(["", "a", "a.b", "\0", "a\0b", "\uFFFD", "'", "x".repeat(5000), "\u{10FFFF}"])
})

const reader = Effect.gen(function* () {
  const { sql } = yield* TestDatabase
  const repository = Postgres.make(sql, pets)
  const read = (cursor?: string) =>
    repository
      .changes({ cursor, limit: 2, wait: Duration.millis(1) })
      .pipe(Effect.provideService(CurrentOrganization, CurrentOrganization.known(owner.organization)))
  yield* sql`insert into pets (organization_id, id) values (${owner.organization}, 'a') on conflict do nothing`
  yield* settled(sql)
  const { cursor } = yield* read()
  return { read, cursor, given: Cursor.decode(cursor) }
})

layer(TestDatabase.layer, { excludeTestServices: true })("a cursor", (it) => {
  for (const { often, options } of tries({ few: 200, many: 600 }))
    it.effect.prop(
      `that was forged is refused, gone or read on from, and never takes the store for down${often}`,
      { forgery },
      ({ forgery: { id, isOfHere, numbers, odd, version } }) =>
        Effect.gen(function* () {
          const { given, read } = yield* reader
          const tokens = isOfHere ? [given?.feed, given?.mark] : ["0123abcd", "0123abcd"]
          const own = [...numbers.slice(version === "1" ? 2 : 1), odd]
          const text = [version, ...tokens, ...own, id].join(".")
          const outcome = yield* Effect.match(read(forged(text)), {
            onSuccess: () => "read on",
            onFailure: ({ _tag }) => _tag
          })
          assert.include(["read on", "CursorInvalid", "CursorExpired"], outcome, text)
        }),
      options
    )

  it.effect.each(["a\0", "\0"])("with U+0000 in its id is refused: %j", (id) =>
    Effect.gen(function* () {
      const { given, read } = yield* reader
      const text = ["1", given?.feed, given?.mark, "0", "0", "0", "0", id].join(".")
      assert.deepStrictEqual(yield* Effect.flip(read(forged(text))), new CursorInvalid())
    })
  )

  it.effect("of the release before goes on, and its load is complete once all that it saw is below the horizon", () =>
    Effect.gen(function* () {
      const { given, read } = yield* reader
      assert.isDefined(given)
      const { ceiling, feed, mark, position, wal } = given
      const numbersOf = [1, ceiling, wal, position].map((number) => number.toString(36))
      const before = forged(["1", feed, mark, ...numbersOf, "a"].join("."))
      assert.deepStrictEqual(Cursor.decode(before), { ...given, id: "a", target: ceiling })
      assert.isTrue((yield* read(before)).isComplete)
    })
  )

  it.effect("is one of the release before once its load is complete", () =>
    Effect.gen(function* () {
      const { cursor, given } = yield* reader
      assert.match(Buffer.from(cursor, "base64url").toString(), /^1\./)
      assert.strictEqual(given?.target, 0)
    })
  )
})
