/**
 * What the doctor says of replicas, and of a server whose roles are missing.
 *
 * @module-tag long
 */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Reactivity } from "effect/reactivity"
import { migrate } from "../../../src/database/Migrations.ts"
import { eventually } from "../../support/eventually.ts"
import { clientOf } from "../../support/TestDatabase.ts"
import * as Cluster from "../../support/Cluster.ts"
import { examined, has } from "./examined.ts"

it.live("The doctor tells of replicas that cannot be written, and that follow no more, and of missing roles", () =>
  Effect.gen(function* () {
    const primary = yield* Cluster.make()
    const replica = yield* Cluster.standbyOf(primary)
    const [onPrimary, onReplica] = [yield* clientOf(primary.url), yield* clientOf(replica.url)]
    yield* migrate(onPrimary)
    yield* eventually(
      "the replica has the tables",
      onReplica`select to_regclass('change_marks') is not null as is_there`,
      ([row]) => row?.["is_there"] === true
    )
    const both = { DATABASE_URL: primary.url, READ_DATABASE_URL: replica.url }
    const fine = yield* examined(both)
    has(fine, "ok", "It is a replica.", "READ_DATABASE_URL")
    has(fine, "ok", "It follows DATABASE_URL", "READ_DATABASE_URL")
    assert.deepStrictEqual(
      fine.filter(({ status }) => status === "fail"),
      []
    )
    has(yield* examined({ DATABASE_URL: replica.url }), "fail", "It is a replica, which cannot be written.")
    const several = primary.url.replace(/@[^/]+/, (host) => `${host},${new URL(replica.url).host}`)
    const twice = primary.url.replace(/@[^/]+/, (host) => `${host},${host.slice(1)}`)
    const primaries = /Several of its servers are primaries/
    const hasOne = Effect.fnUntraced(function* (url: string) {
      const said = yield* examined({ DATABASE_URL: `${url}?target_session_attrs=read-write` })
      assert.isFalse(said.some(({ message }) => primaries.test(message)))
    })
    yield* hasOne(several)
    yield* onReplica`select pg_promote()`
    has(yield* examined({ DATABASE_URL: `${several}?target_session_attrs=read-write` }), "fail", primaries)
    yield* hasOne(twice)
    has(yield* examined(both), "fail", "does not follow its primary any more", "READ_DATABASE_URL")
    yield* onPrimary`alter role practice_data_intake rename to gone`
    has(yield* examined(both), "fail", "The role practice_data_intake does not exist.", "DATABASE_URL")
  }).pipe(Effect.scoped, Effect.provide(Reactivity.layer))
)
