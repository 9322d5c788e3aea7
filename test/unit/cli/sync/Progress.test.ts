/** Reports of a running sync: bars that leave nothing behind on a terminal, and lines for a program. */
import { assert, it } from "@effect/vitest"
import { Effect, Random, Terminal } from "effect"
import { TerminalCapabilities } from "effect/cli"
import { TestClock, TestConsole } from "effect/testing"
import * as Progress from "../../../../src/cli/sync/Progress.ts"

const { Applied, InStep, Note, Opened, RoundEnded, Started } = Progress.Event
const applied = (resource: string, records: number, removed = 0) => Applied({ resource, records, removed })
const inStep = (resource: string, lag = 0) => InStep({ resource, lag })

/** A first load of two resources, and two later rounds. */
const events = [
  Opened({ organization: "org_a", url: "http://service", target: "sqlite:copy.db" }),
  Started({ resource: "charges" }),
  applied("charges", 1000),
  Started({ resource: "consumption-logs" }),
  applied("consumption-logs", 1000),
  Note({ message: "The service says \u001b[2J\u202e\n, and is tried again." }),
  applied("charges", 234, 1),
  inStep("charges"),
  applied("consumption-logs", 500),
  inStep("consumption-logs", 3),
  RoundEnded(),
  Started({ resource: "charges" }),
  applied("charges", 0),
  inStep("charges"),
  RoundEnded(),
  Started({ resource: "charges" }),
  applied("charges", 2, 1),
  inStep("charges"),
  RoundEnded()
]

/** Reports events with half a second between one and the next. */
const tell = Effect.fnUntraced(function* (
  report: Progress.Report,
  { between = Effect.void, count = events.length }: { between?: Effect.Effect<void>; count?: number } = {}
) {
  for (const event of events.slice(0, count)) {
    yield* report(event)
    yield* TestClock.adjust("500 millis")
    yield* between
  }
})

const erase = /^\p{Cc}\[(\d+)A\r\p{Cc}\[J/u

/** A terminal that keeps its lines. It wraps them, and again when it is resized. */
const makeTerminal = (color: boolean, animate: boolean) => {
  let columns = 80
  let written = ""
  const lines: Array<string> = []
  const display = (text: string) => {
    written += text
    let left = Number(erase.exec(text)?.[1] ?? 0)
    while (left > 0) {
      const line = lines.pop() ?? ""
      left -= Math.max(1, Math.ceil(line.length / columns))
      // The cursor stopped in the middle of a line: the rest of it stays.
      if (left < 0) lines.push(line.slice(0, -left * columns))
    }
    const shown = text.replace(erase, "").replaceAll(/\p{Cc}\[\d+m/gu, "")
    lines.push(...shown.split("\n").slice(0, -1))
  }
  const terminal = Terminal.make({
    columns: Effect.sync(() => columns),
    rows: Effect.succeed(24),
    size: Effect.never,
    readInput: Effect.never,
    readLine: Effect.never,
    display: (text) => Effect.sync(() => display(text))
  })
  const report = Progress.text(2).pipe(
    Effect.provideService(Terminal.Terminal, terminal),
    Effect.provideService(TerminalCapabilities.TerminalCapabilities, {
      canColor: color,
      canAnimate: animate,
      canPrompt: false
    })
  )
  return { report, lines, written: () => written, resize: (width: number) => void (columns = width) }
}

const stays = [
  "org_a at http://service, to sqlite:copy.db",
  String.raw`The service says \u001b[2J\u202e\n, and is tried again.`,
  "resource          records  removed  seconds",
  "charges             1,234        1      3.0",
  "consumption-logs    1,500        0      3.0",
  "In step: 2,734 records, 1 removed, after 4.5 s.",
  "00:00:08Z  charges: 2 records, 1 removed"
]

it.effect("on a terminal, counts what is read above a bar of what is in step, which is gone in the end", () =>
  Effect.gen(function* () {
    const { lines, report } = makeTerminal(true, true)
    yield* Effect.gen(function* () {
      yield* tell(yield* report, { count: 9 })
      assert.deepStrictEqual(lines.slice(2), [
        "consumption-logs  1,500 records  500/s",
        "[############------------] 1 of 2 in step  2,734 records, 1 removed  4.0 s"
      ])
    }).pipe(Effect.scoped)
    assert.deepStrictEqual(lines, stays.slice(0, 2))
  })
)

it.effect("on a terminal, leaves no bar behind, however it is resized", () =>
  Effect.gen(function* () {
    for (let time = 0; time < 10; time += 1) {
      const { lines, report, resize } = makeTerminal(true, true)
      const between = Effect.map(Random.nextIntBetween(20, 120), resize)
      yield* Effect.scoped(Effect.flatMap(report, (told) => tell(told, { between })))
      assert.deepStrictEqual(
        lines.map((line) => line.replace(/^\d\d:\d\d:\d\dZ/, "00:00:08Z")),
        stays
      )
    }
  })
)

it.effect("has no colors where they are not wanted, and no bars where the cursor cannot move", () =>
  Effect.gen(function* () {
    for (const { animate, color, has, lacks } of [
      { color: false, animate: true, has: /\p{Cc}\[\d+A/u, lacks: /\p{Cc}\[\d+m/u },
      { color: true, animate: false, has: /^In step: 2,734/m, lacks: /\p{Cc}\[/u }
    ]) {
      const { report, written } = makeTerminal(color, animate)
      yield* Effect.scoped(Effect.flatMap(report, (told) => tell(told)))
      assert.match(written(), has)
      assert.notMatch(written(), lacks)
    }
  })
)

it.effect("for a program, is a line of JSON for each event that matters", () =>
  Effect.gen(function* () {
    yield* tell(yield* Progress.json)
    const told = (yield* TestConsole.logLines).map((line) => {
      const { at, ...event } = JSON.parse(String(line))
      assert.match(at, /^1970-01-01T00:00:0\d\.\d{3}Z$/)
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

it.effect("quiet, is notes alone, on standard error", () =>
  Effect.gen(function* () {
    yield* tell(Progress.quiet)
    assert.lengthOf(yield* TestConsole.logLines, 0)
    assert.lengthOf(yield* TestConsole.errorLines, 1)
  })
)
