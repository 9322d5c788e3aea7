/** The turns of requests: how many begin between two turns of the event loop, and whose. */
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import { Turns } from "../../../src/http/Turns.ts"

const turn = Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)))

it.effect("sixteen requests begin in a turn, in turns of their senders, and none while connections come", () =>
  Effect.gen(function* () {
    const turns = new Turns()
    const begun: Array<string> = []
    const wait = (sender: string) => turns.wait(sender, () => begun.push(sender))
    for (let count = 0; count < 16; count++) assert.isTrue(turns.isFree())
    assert.isFalse(turns.isFree())
    yield* turn
    assert.isTrue(turns.isFree())
    for (let count = 0; count < 30; count++) wait("a")
    wait("b")
    yield* turn
    assert.strictEqual(begun.join(""), "ab" + "a".repeat(14))
    turns.accept()
    yield* turn
    assert.lengthOf(begun, 16)
    yield* turn
    assert.lengthOf(begun, 31)
    yield* turn
    turns.accept()
    assert.isFalse(turns.isFree())
    yield* turn
    yield* turn
    assert.isTrue(turns.isFree())
  })
)
