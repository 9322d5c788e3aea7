/** The operators' listener of a started program, and scrapes of its metrics as Prometheus makes them. */
import { spawnSync } from "node:child_process"
import { Effect } from "effect"
import * as Client from "./Client.ts"
import { eventually } from "./eventually.ts"
import type { Process } from "./Process.ts"

const page = /Operators' page:? (http:\/\/[^/\s"\\]+)\/ops/

/** The address of the operators' listener, once the program has logged it. */
export const operationsOf = Effect.fnUntraced(function* ({ output }: Pick<Process, "output">) {
  yield* eventually("the operators' listener", () => page.test(output()))
  return page.exec(output())?.[1] ?? ""
})

/** A scrape of a program's metrics: its text, and how long it took. */
export const scraper = Effect.fnUntraced(function* (program: Pick<Process, "output">) {
  const { call } = yield* Client.make(yield* operationsOf(program), 2)
  const scrape = Effect.map(Effect.timed(call({ path: "/metrics", method: "GET", headers: {} })), ([took, answer]) => ({
    ...answer,
    took
  }))
  return { scrape }
})

/** True where there is a promtool. */
export const hasPromtool = spawnSync("promtool", ["--version"]).error === undefined

/** The complaints of `promtool check metrics` about a text. */
export const promtool = (text: string): string => {
  const { stderr, stdout } = spawnSync("promtool", ["check", "metrics"], { input: text, encoding: "utf8" })
  return stdout + stderr
}
