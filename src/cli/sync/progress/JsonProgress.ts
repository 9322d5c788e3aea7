/** Tells a program what happens: a line of JSON for each event, and for pages at most one a second of a resource. */
import { Clock, DateTime, Effect, Layer } from "effect"
import { print } from "../../../process/Printed.ts"
import { type Event, Progress } from "./Progress.ts"
import * as Tally from "./Tally.ts"

/** Milliseconds between two lines about pages of a resource. */
const interval = 1000

const textOf = (now: number, line: object) =>
  JSON.stringify({ at: DateTime.formatIso(DateTime.makeUnsafe(now)), ...line })

const make = Effect.sync(() => {
  const tally = Tally.make()
  const told = new Map<string, number>()
  /** How many changes a resource had when it was last in step, since all were. */
  const inStep = new Map<string, number>()
  let rounds = 0

  const linesOf = (event: Event, now: number): ReadonlyArray<object> => {
    switch (event._tag) {
      case "Opened": {
        const { organization, target, url } = event
        return [{ event: "opened", organization, url, target }]
      }
      case "Started":
        told.set(event.resource, now)
        return []
      case "Applied": {
        const { resource } = event
        if (now - (told.get(resource) ?? now) < interval) return []
        told.set(resource, now)
        const { records, removed } = tally.count(resource) ?? event
        return [{ event: "applied", resource, records, removed }]
      }
      case "InStep": {
        const { lag, resource } = event
        const count = tally.count(resource)
        if (count === undefined) return []
        const { records, removed } = count
        if (records + removed === (inStep.get(resource) ?? (rounds > 0 ? 0 : undefined))) return []
        inStep.set(resource, records + removed)
        return [{ event: "in_step", resource, records, removed, seconds: Tally.secondsOf(count, now), lag }]
      }
      case "RoundEnded": {
        const { records, removed, since } = Tally.totalOf(tally.counts())
        if (rounds > 0 && records + removed === 0) return []
        return [{ event: "done", records, removed, seconds: (now - since) / 1000 }]
      }
      case "Note":
        return [{ event: "note", message: event.message }]
    }
  }

  return Progress.of({
    report: Effect.fnUntraced(function* (event) {
      const now = yield* Clock.currentTimeMillis
      if (event._tag !== "RoundEnded") tally.add(event, now)
      for (const line of linesOf(event, now)) {
        yield* print(textOf(now, line))
      }
      if (event._tag === "RoundEnded") {
        tally.add(event, now)
        inStep.clear()
        rounds += 1
      }
    })
  })
})

export const layer = Layer.effect(Progress, make)
