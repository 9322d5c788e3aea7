/** The findings of the doctor, for tests. */
import { assert } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Effect, Layer } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Doctor from "../../../src/operations/doctor/Doctor.ts"

const services = Layer.merge(NodeServices.layer, Reactivity.layer)

/** Examines an installation that has these variables. It takes a free port unless one is given. */
export const examined = (environment: Readonly<Record<string, string>>) =>
  Doctor.examine().pipe(
    Effect.scoped,
    Effect.provide(services),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { PORT: "0", ...environment } }))
  )

const textOf = ({ advice = "", area, message, status }: Doctor.Finding) => `${status} ${area}: ${message} ${advice}`

/** Fails unless there is such a finding, with advice where something is wrong. */
export const has = (
  findings: ReadonlyArray<Doctor.Finding>,
  status: Doctor.Finding["status"],
  message: RegExp | string,
  area?: string
) => {
  const found = findings.filter(
    (each) =>
      each.status === status &&
      (area === undefined || each.area === area) &&
      (typeof message === "string" ? each.message.includes(message) : message.test(each.message))
  )
  assert.isAbove(found.length, 0, `${status} ${String(message)} is not among:\n${findings.map(textOf).join("\n")}`)
  for (const each of found) assert.strictEqual(each.advice === undefined, status === "ok")
}

/** Fails if something is wrong. The databases of tests are on one server, and share its roles. */
export const isFine = (findings: ReadonlyArray<Doctor.Finding>) => {
  const faults = findings.filter(({ message, status }) => status !== "ok" && !message.includes("in other databases"))
  assert.deepStrictEqual(faults.map(textOf), [])
}
