/**
 * The feeds of changes after the files of a cluster were put back: it has the same identifier and timeline, and gives the
 * same transaction ids again.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import * as Cluster from "../../../support/Cluster.ts"
import * as Follower from "../../../support/Follower.ts"

const { put } = Follower

for (const [how, isStopped, isServed] of [
  ["A copy of a stopped server", true, true],
  ["A copy of a stopped server, and it is served again only later,", true, false],
  ["A volume's snapshot of a running server", false, true],
  ["A volume's snapshot of a running server, and it is served again only later,", false, false]
] as const) {
  it.live(`${how} is put back: readers of what is lost get 410, and the others go on`, () =>
    Effect.gen(function* () {
      const cluster = yield* Cluster.make()
      const run = (text: string) => cluster.sql.unsafe(text)
      const early = Follower.make()
      const [late, latest] = [Follower.make(), Follower.make()]
      yield* Effect.gen(function* () {
        const service = yield* Follower.service(cluster)
        yield* run(put("a", "first"))
        yield* run(put("b", "first"))
        yield* late.drain(service)
        yield* early.drain(service)
      }).pipe(Effect.scoped)
      if (isStopped) yield* cluster.stop
      const copy = yield* cluster.snapshot
      if (isStopped) yield* cluster.start

      const restore = Effect.gen(function* () {
        yield* cluster.kill
        yield* cluster.putBack(copy)
        yield* cluster.start
      })
      const lose = Effect.gen(function* () {
        const service = yield* Follower.service(cluster)
        for (let n = 0; n < 5; n++) yield* run(put(`lost_${n}`, "lost"))
        yield* late.drain(service)
        yield* run(`delete from pets where id = 'a'`)
        yield* Follower.settled(latest, service)
        if (isServed) yield* restore
      })
      yield* Effect.scoped(lose)
      if (!isServed) yield* restore
      // The ids that were lost are given again, and more.
      for (let n = 0; n < 30; n++) yield* run(put(`again_${n % 25}`, `again ${n}`))
      const after = yield* Follower.service(cluster)
      for (const [name, reader, gone] of [
        ["early", early, 0],
        ["late", late, 1],
        ["latest", latest, 1]
      ] as const) {
        yield* Follower.settled(reader, after)
        yield* Follower.assertEqual(reader, cluster.sql, name)
        assert.strictEqual(reader.gone(), gone, name)
      }
    })
  )
}

it.live(
  "Restarts and crashes end no cursor, also where a transaction that stays open keeps the marks from proving much",
  () =>
    Effect.gen(function* () {
      const cluster = yield* Cluster.make()
      const service = yield* Follower.service(cluster)
      const reader = Follower.make()
      yield* reader.drain(service)
      for (const [n, end] of [cluster.stop, cluster.kill, cluster.stop, cluster.kill, cluster.kill].entries()) {
        yield* Effect.gen(function* () {
          const reserved = yield* cluster.sql.reserve
          yield* cluster.sql.unsafe(put(`before_${n}`, "written"))
          yield* reserved.executeUnprepared("begin", [], undefined)
          yield* reserved.executeUnprepared(put(`open_${n}`, "lost"), [], undefined)
          yield* cluster.sql.unsafe(put(`after_${n}`, "written"))
          yield* reader.drain(service)
          yield* end
        }).pipe(Effect.scoped)
        yield* cluster.start
        yield* cluster.sql.unsafe(put(`next_${n}`, "written"))
        yield* Follower.settled(reader, service)
        yield* Follower.assertEqual(reader, cluster.sql)
        assert.strictEqual(reader.gone(), 0, `end ${n}`)
      }
      const marks = yield* cluster.sql`select timeline from change_marks`
      assert.lengthOf(marks, 6)
    })
)
