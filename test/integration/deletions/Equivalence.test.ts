/** Whatever is done to tasks, in any order: the fake in memory and Postgres return the same. */
import { assert, layer } from "@effect/vitest"
import { Arbitrary, Context, Duration, Effect, Layer, Schema } from "effect"
import { TestClock } from "effect/testing"
import { Scheduler } from "../../../src/deletions/Scheduler.ts"
import type { Claim, ScheduleOutcome, SchedulerUnavailable } from "../../../src/deletions/Task.ts"
import { integer } from "../../support/arbitraries.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import { long, tries } from "../../support/tries.ts"
import { delivery, inItsOwnTime, lease, onDatabase, stores as all } from "../../support/deletions/support.ts"

const Operation = Schema.Union([
  Schema.TaggedStruct("Schedule", { key: Schema.Literals(["1", "2", "3"]), invoice: Schema.Literals(["a", "b"]) }),
  Schema.TaggedStruct("Claim", {}),
  Schema.TaggedStruct("Wait", { seconds: Schema.Literals([1, 5, 11, 60]) }),
  // What is done with a claim: the last one, the one before, and so on.
  Schema.TaggedStruct("Run", { back: Schema.Literals([0, 1, 2, 3]) }),
  Schema.TaggedStruct("Renew", { back: Schema.Literals([0, 1, 2, 3]) }),
  Schema.TaggedStruct("Release", { back: Schema.Literals([0, 1, 2, 3]) }),
  Schema.TaggedStruct("Fail", { back: Schema.Literals([0, 1, 2, 3]), seconds: Schema.Literals([0, 7]) })
])
type Operation = typeof Operation.Type

/** A scheduler, and the claims that it has given out, the latest first. */
interface Subject {
  readonly scheduler: Scheduler["Service"]
  readonly claims: Array<Claim>
}

/** What both have to return alike: all but the tokens, and the counts that the fake has none of. */
type Returned = ReadonlyArray<string> | ScheduleOutcome | Duration.Duration | undefined | void

const shown = ({ organization, taskId, attempt }: Claim) => `${organization} ${taskId} ${attempt}`

const apply = (
  { scheduler, claims }: Subject,
  operation: Operation
): Effect.Effect<Returned, SchedulerUnavailable | { readonly _tag: "TaskFailed" }> => {
  switch (operation._tag) {
    case "Schedule":
      return scheduler.schedule(delivery(operation.key, { invoices: [{ invoice_id: operation.invoice }] }))
    case "Wait":
      return scheduler.untilDue
    case "Claim":
      return Effect.gen(function* () {
        const claimed = yield* scheduler.claim({ due: 100, expired: 100, alone: 100 }, lease)
        // Tasks that are due at the same time have no order among them, so that their leases shall end one by one.
        const inOrder = claimed.toSorted((one, other) => (one.taskId < other.taskId ? -1 : 1))
        for (const [index, claim] of inOrder.entries()) {
          yield* scheduler.renew([claim], Duration.sum(lease, Duration.millis(index)))
        }
        claims.unshift(...inOrder)
        return inOrder.map(shown)
      })
    default: {
      const claim = claims[operation.back]
      if (claim === undefined) return Effect.void
      switch (operation._tag) {
        case "Run":
          return Effect.map(scheduler.run([claim]), (outcomes) => outcomes.map(({ _tag }) => _tag))
        case "Renew":
          return scheduler.renew([claim], lease)
        case "Release":
          return scheduler.release(claim)
        case "Fail":
          return scheduler.fail(claim, "No", Duration.seconds(operation.seconds))
      }
    }
  }
}

/** Tasks that are due, so that there is something to do at the start. */
const initial: ReadonlyArray<Operation> = [
  { _tag: "Schedule", key: "1", invoice: "a" },
  { _tag: "Schedule", key: "2", invoice: "a" },
  { _tag: "Wait", seconds: 60 }
]

/** Mostly what moves tasks on, so that they also come to their ends. */
const operations = Arbitrary.array(
  Arbitrary.flatMap(integer(0, 3), (choice) => {
    const often: Arbitrary.Arbitrary<Operation> = Arbitrary.Constant({ _tag: "Claim" })
    return choice === 0 ? often : Arbitrary.schema(Operation)
  }),
  { minLength: 20, maxLength: 80 }
)

const [inMemory, ofAll, ofOne] = all

const cases = [
  ...tries({ few: 10, many: 80, size: 80, maxShrinks: 200 }).map(({ options }) => ({
    options,
    stores: [inMemory, ofAll]
  })),
  { options: { ...long, arbitrary: { runs: 30, size: 80, maxShrinks: 50 } }, stores: [inMemory, ofOne] }
]

layer(TestDatabase.layerDatabases, onDatabase)("schedulers", (it) => {
  for (const { options, stores } of cases)
    it.effect.prop(
      `return the same for the same operations, one after the other (${stores.map(({ store }) => store).join(" and ")}, ${options.arbitrary.runs} runs)`,
      { operations },
      ({ operations: given }) =>
        Effect.gen(function* () {
          const [memory, postgres] = yield* Effect.forEach(stores, ({ scheduler }) =>
            Effect.map(Layer.build(Layer.fresh(scheduler)), (context): Subject => ({
              scheduler: Context.get(context, Scheduler),
              claims: []
            }))
          )
          if (memory === undefined || postgres === undefined) return assert.fail("There are two schedulers")
          for (const [index, operation] of [...initial, ...given].entries()) {
            yield* TestClock.adjust(operation._tag === "Wait" ? Duration.seconds(operation.seconds) : "10 millis")
            const expected = yield* apply(memory, operation)
            assert.deepStrictEqual(yield* apply(postgres, operation), expected, `${index}: ${operation._tag}`)
          }
        }).pipe(inItsOwnTime),
      options
    )
})
