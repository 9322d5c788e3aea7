/** Whose tasks are claimed first, by any scheduler. Decisions: "Fairness, bounds and age of tasks". */
import { assert } from "@effect/vitest"
import { Array, Effect } from "effect"
import { TestClock } from "effect/testing"
import { claimSome, delay, delivery, idsOf, scheduled, suite } from "../../support/deletions/support.ts"

/** Schedules so many tasks of an organization, a millisecond apart. */
const backlog = (owner: string, count: number) =>
  Effect.forEach(Array.range(1, count), (index) =>
    Effect.tap(scheduled(delivery(`${owner}-${index}`, undefined, owner)), TestClock.adjust("1 milli"))
  )

const ownersOf = (claims: Effect.Success<ReturnType<typeof claimSome>>) =>
  claims.map(({ organization }) => organization)

suite("organizations take turns", [
  [
    "a due task is claimed by the third claim at the latest, however many of another organization are older",
    Effect.gen(function* () {
      for (const flood of ["org_a", "org_z"]) {
        yield* backlog(flood, 40)
        const { taskId } = yield* scheduled(delivery("honest", undefined, `org_m beside ${flood}`))
        yield* TestClock.adjust(delay)
        const claims = [yield* claimSome({ due: 8 }), yield* claimSome({ due: 8 }), yield* claimSome({ due: 8 })]
        assert.include(idsOf(claims.flat()), taskId)
        assert.lengthOf(claims.flat(), 24)
        yield* Effect.replicateEffect(claimSome({ due: 8 }), 4)
      }
    })
  ],
  [
    "the places of a claim are shared equally, and those that one does not need are the others'",
    Effect.gen(function* () {
      yield* Effect.all([backlog("org_a", 30), backlog("org_b", 30), backlog("org_c", 2)])
      yield* TestClock.adjust(delay)
      const claims = [yield* claimSome({ due: 12 }), yield* claimSome({ due: 12 })]
      const equal = [["org_a", 5] as const, ["org_b", 5] as const, ["org_c", 2] as const].flatMap(([owner, count]) =>
        Array.replicate(owner, count)
      )
      // Organizations take turns from the first claim on, or from the second one, which follows a full one.
      assert.deepInclude(
        claims.map((claim) => ownersOf(claim).toSorted()),
        equal
      )
    })
  ],
  [
    "within an organization the oldest go first",
    Effect.gen(function* () {
      const tasks = yield* backlog("org_a", 12)
      yield* backlog("org_b", 12)
      yield* TestClock.adjust(delay)
      const all = [yield* claimSome({ due: 4 }), yield* claimSome({ due: 4 }), yield* claimSome({ due: 4 })].flat()
      const ours = idsOf(all.filter(({ organization }) => organization === "org_a"))
      assert.deepStrictEqual(ours, idsOf(tasks.slice(0, ours.length)))
    })
  ],
  [
    "each of 300 organizations is reached, beside a backlog and others with nothing due",
    Effect.gen(function* () {
      const owners = Array.makeBy(300, (index) => `org_${index}`)
      yield* backlog("org_", 100)
      yield* Effect.forEach(owners, (owner) => scheduled(delivery("1", undefined, owner)))
      yield* TestClock.adjust(delay)
      yield* Effect.forEach(owners, (owner) => scheduled(delivery("2", undefined, `${owner}_idle`)))
      const reached = new Set<string>()
      for (let claim = 0; claim < 20; claim++) {
        for (const owner of ownersOf(yield* claimSome({ due: 64 }))) reached.add(owner)
      }
      assert.includeMembers([...reached], owners)
    })
  ],
  [
    "nothing is left while there is room, whoever's turn it is",
    Effect.gen(function* () {
      yield* Effect.all([backlog("org_a", 20), backlog("org_b", 3)])
      yield* TestClock.adjust(delay)
      const sizes: Array<number> = []
      for (let claim = 0; claim < 4; claim++) sizes.push((yield* claimSome({ due: 8 })).length)
      assert.deepStrictEqual(sizes, [8, 8, 7, 0])
    })
  ],
  [
    "beside the tasks that a worker has, those of other organizations alone are claimed if it wants that",
    Effect.gen(function* () {
      yield* Effect.all([backlog("org_a", 5), backlog("org_b", 3), backlog("org_c", 3)])
      yield* TestClock.adjust(delay)
      const except = new Set(["org_a", "org_c"])
      assert.deepStrictEqual(ownersOf(yield* claimSome({ due: 8, except })), Array.replicate("org_b", 3))
      assert.isEmpty(yield* claimSome({ due: 8, except }))
    })
  ]
])
