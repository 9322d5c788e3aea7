/** Scrapes a started program as Prometheus does. */
import { spawnSync } from "node:child_process"
import { Effect, Predicate } from "effect"
import * as Client from "./Client.ts"
import { eventually } from "./eventually.ts"
import type { Process } from "./Process.ts"

const page = /Operators' page:? (http:\/\/[^/\s"\\]+)\/ops/

/** Where the operators' listener of a program is, once it has said so. */
export const operationsOf = Effect.fnUntraced(function* ({ output }: Pick<Process, "output">) {
  const found = () => page.exec(output())?.[1]
  yield* eventually(
    "the operators' listener",
    Effect.sync(() => Predicate.isNotUndefined(found()))
  )
  return found() ?? ""
})

/** A scrape of the operators' listener of a program: its text, and how long it took. */
export const scraper = Effect.fnUntraced(function* (program: Pick<Process, "output">) {
  const { call } = yield* Client.make(yield* operationsOf(program), 2)
  const scrape = Effect.map(Effect.timed(call({ path: "/metrics", method: "GET", headers: {} })), ([took, answer]) => ({
    ...answer,
    took
  }))
  return { scrape }
})

/** Whether there is a promtool. */
export const hasPromtool = spawnSync("promtool", ["--version"]).error === undefined

/** What `promtool check metrics` says of a text: nothing if it is fine. */
export const promtool = (text: string): string => {
  const { stderr, stdout } = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" })
  return stdout + stderr
}
