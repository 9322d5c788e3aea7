/** `doctor`. */
import { Effect, Layer, Record } from "effect"
import { Command, TerminalCapabilities } from "effect/cli"
import { Reactivity } from "effect/reactivity"
import * as Doctor from "../operations/doctor/Doctor.ts"
import type { Finding } from "../operations/doctor/Finding.ts"
import * as HttpClient from "../process/HttpClient.ts"
import { invocation } from "../process/Package.ts"
import * as Output from "./Output.ts"
import { Refused } from "./Refused.ts"

const marks = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const
const colors = { ok: 32, warn: 33, fail: 31 } as const

const linesOf = (findings: ReadonlyArray<Finding>) =>
  [...Map.groupBy(findings, ({ area }) => area)].flatMap(([area, found]) => [
    area,
    ...found.flatMap(({ advice, message, status }) => [
      `  ${marks[status]}  ${message}`,
      ...(advice === undefined ? [] : [`        ${advice}`])
    ])
  ])

/** Colors the mark that a line begins with. */
const paint = (line: string) =>
  Record.toEntries(marks)
    .filter(([, mark]) => line.startsWith(`  ${mark}  `))
    .reduce((painted, [status, mark]) => painted.replace(mark, `\u001b[${colors[status]}m${mark}\u001b[39m`), line)

const count = (findings: ReadonlyArray<Finding>, status: Finding["status"]) =>
  findings.filter((finding) => finding.status === status).length

/** Looks for what is wrong, and says what to do. Fails if a check does. */
export const doctor = Command.make(
  "doctor",
  { json: Output.json },
  Effect.fn(function* ({ json }) {
    const findings = yield* Effect.scoped(Doctor.examine())
    if (json) yield* Effect.forEach(findings, Output.record, { discard: true })
    else {
      const { canColor } = yield* TerminalCapabilities.TerminalCapabilities
      yield* Output.print(linesOf(findings), canColor ? paint : undefined)
    }
    const [failures, warnings] = [count(findings, "fail"), count(findings, "warn")]
    const summary = `${failures} failed, ${warnings} to look at, ${count(findings, "ok")} fine.`
    if (failures > 0) return yield* new Refused({ message: summary })
    yield* Output.note(summary)
  })
).pipe(
  Command.withDescription(
    "Look for what is wrong with this installation, and say what to do: the variables, each database (server, way to it, clock, settings of sessions, connections, migrations, roles, deletions, changes), the payment processor, the service. Nothing is changed. Exits with 1 if something failed."
  ),
  Command.provide(Layer.merge(HttpClient.layer, Reactivity.layer)),
  Command.withShortDescription("Look for what is wrong, and say what to do"),
  Command.withExamples([
    { command: invocation("doctor") },
    { command: `${invocation("doctor --json")} | jq 'select(.status != "ok")'` }
  ])
)
