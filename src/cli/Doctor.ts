/** `doctor`. */
import { Effect, Layer } from "effect"
import { Command } from "effect/cli"
import { Reactivity } from "effect/reactivity"
import * as Doctor from "../operations/doctor/Doctor.ts"
import type { Finding } from "../operations/doctor/Check.ts"
import * as HttpClient from "../process/HttpClient.ts"
import * as Output from "./Output.ts"
import { documented, Refused } from "./Usage.ts"

const marks = { ok: "ok  ", warn: "warn", fail: "FAIL" } as const

const linesOf = (findings: ReadonlyArray<Finding>) =>
  [...Map.groupBy(findings, ({ area }) => area)].flatMap(([area, found]) => [
    area,
    ...found.flatMap(({ advice, message, status }) => [
      `  ${marks[status]}  ${message}`,
      ...(advice === undefined ? [] : [`        ${advice}`])
    ])
  ])

/** Fails if a check does. */
export const doctor = Command.make(
  "doctor",
  { json: Output.json },
  Effect.fn(function* ({ json }) {
    const findings = yield* Effect.scoped(Doctor.examine())
    if (json) yield* Effect.forEach(findings, Output.record, { discard: true })
    else yield* Output.print(linesOf(findings))
    const count = (status: Finding["status"]) => findings.filter((finding) => finding.status === status).length
    const summary = `${count("fail")} failed, ${count("warn")} to look at, ${count("ok")} fine.`
    if (count("fail") > 0) return yield* new Refused({ message: summary })
    yield* Output.note(summary)
  })
).pipe(
  Command.provide(Layer.merge(HttpClient.layer, Reactivity.layer)),
  documented(
    "Look for what is wrong, and say what to do",
    [["practice-data doctor"], ["practice-data doctor --json | jq 'select(.status != \"ok\")'"]],
    "Look for what is wrong with this installation, and say what to do: the variables, each database (server, way to it, clock, settings of sessions, connections, migrations, roles, deletions, changes), the payment processor, the service. Nothing is changed. Exits with 1 if something failed."
  )
)
