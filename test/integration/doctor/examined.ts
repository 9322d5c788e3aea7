/** The findings of the doctor, for tests. */
import { assert } from "@effect/vitest"
import { NodeServices } from "@effect/platform-node"
import { ConfigProvider, Context, Effect, Layer } from "effect"
import * as Reactivity from "effect/reactivity/Reactivity"
import { SqlClient } from "effect/sql"
import { script } from "../../../src/database/script.ts"
import type { Finding } from "../../../src/operations/Check.ts"
import * as Doctor from "../../../src/operations/doctor/Doctor.ts"
import * as HttpClient from "../../../src/process/HttpClient.ts"
import { printable } from "../../../src/process/Printed.ts"
import { clientOf, TestDatabase } from "../../support/TestDatabase.ts"

/** A database whose order of changes has begun: that of a copy of another has not. */
export const begun = Layer.tap(
  TestDatabase.layer,
  (context) => Context.get(context, TestDatabase).sql`select change_begin()`
)

const services = Layer.mergeAll(NodeServices.layer, Reactivity.layer, HttpClient.layer)

/** Examines an installation that has these variables. It takes a free port unless one is given. */
export const examined = (environment: Readonly<Record<string, string>>) =>
  Doctor.examine().pipe(
    Effect.scoped,
    Effect.provide(services),
    Effect.provideService(ConfigProvider.ConfigProvider, ConfigProvider.fromEnv({ env: { PORT: "0", ...environment } }))
  )

const textOf = ({ advice = "", area, message, status }: Finding) => `${status} ${area}: ${message} ${advice}`

/** Fails unless there is such a finding, with advice where something is wrong. */
export const has = (
  findings: ReadonlyArray<Finding>,
  status: Finding["status"],
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

/** Fails if something is wrong. */
export const isFine = (findings: ReadonlyArray<Finding>) =>
  assert.deepStrictEqual(findings.filter(({ status }) => status !== "ok").map(textOf), [])

/** The messages of findings, names without quotes. */
export const messagesOf = (findings: ReadonlyArray<{ readonly message: string }>) =>
  findings.map(({ message }) => message.replaceAll('"', ""))

/** Runs statements as psql does. Those with the body of a function, which has semicolons, all in one. */
export const run = (text: string) =>
  Effect.flatMap(TestDatabase, ({ sql }) =>
    text.includes("$function$")
      ? Effect.provideService(script(text), SqlClient.SqlClient, sql)
      : Effect.forEach(text.split(/;\s+(?=[a-z]+ )/i), (statement) => sql.unsafe(statement), { discard: true })
  )

/** Runs statements, and others when the scope closes: the tests share the database, one after the other. */
export const during = (statements: string, undone: string) =>
  Effect.acquireRelease(run(statements), () => Effect.orDie(run(undone)))

/** What a login or a database may have set: it changes nothing of what is found, and of what the remedies do. */
export const inherited = {
  DateStyle: "German, DMY",
  IntervalStyle: "sql_standard",
  TimeZone: "Pacific/Apia",
  default_transaction_isolation: "serializable",
  "plpgsql.extra_errors": "all",
  quote_all_identifiers: "on",
  standard_conforming_strings: "off"
}

export const inheriting = Effect.flatMap(TestDatabase, ({ url }) => clientOf(url, { settings: inherited }))

/** Runs a remedy as a terminal shows it. A statement that builds an index concurrently is alone. */
export const mend = Effect.fnUntraced(function* (remedy: string) {
  const sql = yield* inheriting
  const shown = remedy.split("\n").map(printable).join("\n")
  const texts = /concurrently/i.test(shown)
    ? shown.split("; ")
    : [`do $do$ begin execute $mend$${shown}$mend$; end $do$`]
  yield* Effect.forEach(texts, (text) => sql.unsafe(text), { discard: true })
}, Effect.scoped)
