/** Reports of a running sync: bars that leave nothing behind on a terminal, and lines for a program. */
import { Console as NodeConsole } from "node:console"
import { Writable } from "node:stream"
import { assert, describe, it } from "@effect/vitest"
import { Console, Effect, Layer, Random, Terminal } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { TestClock } from "effect/testing"
import { Event, Progress } from "../../../../src/cli/sync/Progress.ts"
import { eventsOf } from "../../../system/cli/sync/command.ts"
import * as TestTerminal from "./Terminal.ts"

const opened = Event.Opened({ organization: "org_a", url: "http://service", target: "sqlite:copy.db" })
const note = Event.Note({ message: "The service says \u001b[2J\u202e\n, and is tried again." })
const applied = (resource: string, records: number, removed = 0) => Event.Applied({ resource, records, removed })

/** A first load of two resources, and a later round. */
const events = [
  opened,
  Event.Started({ resource: "charges" }),
  applied("charges", 1000),
  Event.Started({ resource: "consumption-logs" }),
  applied("consumption-logs", 1000),
  note,
  applied("charges", 234, 1),
  Event.InStep({ resource: "charges", lag: 0 }),
  applied("consumption-logs", 500),
  Event.InStep({ resource: "consumption-logs", lag: 3 }),
  Event.RoundEnded(),
  Event.Started({ resource: "charges" }),
  applied("charges", 0),
  Event.InStep({ resource: "charges", lag: 0 }),
  Event.RoundEnded(),
  Event.Started({ resource: "charges" }),
  applied("charges", 2, 1),
  Event.InStep({ resource: "charges", lag: 0 }),
  Event.RoundEnded()
]

/** Tells all of it, with half a second between one and the next. */
const tell = (between: Effect.Effect<unknown> = Effect.void) =>
  Effect.gen(function* () {
    const { report } = yield* Progress
    for (const event of events) {
      yield* report(event)
      yield* TestClock.adjust("500 millis")
      yield* between
    }
  })

const onTerminal = (terminal: Terminal.Terminal, can: { readonly color: boolean; readonly animate: boolean }) =>
  Layer.fresh(Progress.layerText(2)).pipe(
    Layer.provide(Layer.succeed(Terminal.Terminal, terminal)),
    Layer.provide(
      Layer.succeed(TerminalCapabilities.TerminalCapabilities, {
        canColor: can.color,
        canAnimate: can.animate,
        canPrompt: false
      })
    )
  )

const stays = [
  "org_a at http://service, to sqlite:copy.db",
  String.raw`The service says \u001b[2J\u202e\n, and is tried again.`,
  "resource          records  removed  seconds",
  "charges             1,234        1      3.0",
  "consumption-logs    1,500        0      3.0",
  "In step: 2,734 records, 1 removed, after 4.5 s.",
  "00:00:08Z  charges: 2 records, 1 removed"
]

describe("on a terminal", () => {
  it.effect("counts what is read, above a bar of what is in step", () =>
    Effect.gen(function* () {
      const { lines, terminal } = TestTerminal.make(80, 24)
      yield* Effect.gen(function* () {
        const { report } = yield* Progress
        for (const event of events.slice(0, 9)) {
          yield* report(event)
          yield* TestClock.adjust("500 millis")
        }
        assert.deepStrictEqual(lines().slice(2), [
          "consumption-logs  1,500 records  500/s",
          "[############------------] 1 of 2 in step  2,734 records, 1 removed  4.0 s"
        ])
      }).pipe(Effect.provide(onTerminal(terminal, { color: true, animate: true })))
      assert.deepStrictEqual(lines(), stays.slice(0, 2))
    })
  )

  it.effect("leaves no bar behind, however it is resized", () =>
    Effect.gen(function* () {
      for (let time = 0; time < 10; time += 1) {
        const { lines, resize, terminal } = TestTerminal.make(80, 24)
        const resizing = Effect.map(Random.nextIntBetween(20, 120), resize)
        yield* tell(resizing).pipe(Effect.provide(onTerminal(terminal, { color: true, animate: true })))
        assert.deepStrictEqual(
          lines().map((line) => line.replace(/\d\d:\d\d:\d\dZ/, "00:00:08Z")),
          stays
        )
      }
    })
  )

  it.effect("has no colors where they are not wanted, and no bars where the cursor cannot move", () =>
    Effect.gen(function* () {
      const plain = TestTerminal.make(80, 24)
      yield* tell().pipe(Effect.provide(onTerminal(plain.terminal, { color: false, animate: true })))
      assert.notMatch(plain.written(), /\p{Cc}\[\d+m/u)
      assert.include(plain.written(), "\u001b[")
      const still = TestTerminal.make(80, 24)
      yield* tell().pipe(Effect.provide(onTerminal(still.terminal, { color: false, animate: false })))
      assert.notInclude(still.written(), "\u001b")
      assert.strictEqual(still.lines().length, stays.length)
    })
  )
})

describe("for a program", () => {
  it.effect("is a line of JSON for each event that matters", () =>
    Effect.gen(function* () {
      let text = ""
      const stream = new Writable({
        write: (piece, _, done) => {
          text += String(piece)
          done()
        }
      })
      yield* tell().pipe(
        Effect.provide(Layer.fresh(Progress.layerJson)),
        Effect.provideService(Console.Console, new NodeConsole(stream))
      )
      const told = eventsOf(text).map(({ at, ...event }) => {
        assert.match(String(at), /^\d{4}-\d\d-\d\dT.*Z$/)
        return event
      })
      assert.deepStrictEqual(told, [
        { event: "opened", organization: "org_a", url: "http://service", target: "sqlite:copy.db" },
        { event: "note", message: "The service says \u001b[2J\u202e\n, and is tried again." },
        { event: "applied", resource: "charges", records: 1234, removed: 1 },
        { event: "in_step", resource: "charges", records: 1234, removed: 1, seconds: 3, lag: 0 },
        { event: "applied", resource: "consumption-logs", records: 1500, removed: 0 },
        { event: "in_step", resource: "consumption-logs", records: 1500, removed: 0, seconds: 3, lag: 3 },
        { event: "done", records: 2734, removed: 1, seconds: 4.5 },
        { event: "in_step", resource: "charges", records: 2, removed: 1, seconds: 1, lag: 0 },
        { event: "done", records: 2, removed: 1, seconds: 1.5 }
      ])
    })
  )
})
