/**
 * The documented example of a sender, against the started program.
 *
 * @module-tag long
 */
import { spawnSync } from "node:child_process"
import { assert, layer } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import * as SigningSecrets from "../../../src/keys/SigningSecrets.ts"
import { TaskDatabase } from "../../../src/database/Database.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Process from "../../support/Process.ts"
import * as Program from "../../support/Program.ts"
import { run } from "../../support/run.ts"
import { live } from "../../support/tries.ts"

/** A demo organization that requires signatures; the other one does not. */
const organization = "org_harbor"

const lacking = ["sh", "curl", "openssl", "od"].filter(
  (program) => spawnSync(program, ["--version"]).error !== undefined
)

/** The shell script of a document. Of two, the last. */
const exampleIn = (document: string) => {
  const description = String(JSON.parse(document).info.description)
  return [...description.matchAll(/^```sh\n([^]*?)\n```$/gm)].at(-1)?.[1] ?? ""
}

layer(TestDatabase.layerDemo, live)("A sender", (it) => {
  it.effect.skipIf(lacking.length > 0)(
    `has its delivery accepted, signed by the documented example, and refused with another secret${lacking.map((program) => ` (no ${program} here)`).join("")}`,
    () =>
      Effect.gen(function* () {
        const { sql, url } = yield* TestDatabase
        const { secret } = yield* Effect.provideService(SigningSecrets.create(organization), TaskDatabase, sql)
        const { client } = yield* Program.start({ DATABASE_URL: url, DELETION_DELAY: "0s" })
        const { text } = yield* client.call({ path: "/api/v1/openapi.json", method: "GET", headers: {} })
        const example = exampleIn(text)
        /** Runs the example as it stands: its output, standard error included. */
        const send = Effect.fnUntraced(function* (SECRET: string) {
          const env = { ...process.env, INTAKE: `${client.address}/api/v1`, ORGANIZATION: organization, SECRET }
          const cwd = yield* Process.temporaryFolder
          const { stderr, stdout } = yield* run("sh", ["-c", example], { cwd, env, timeout: 60_000 })
          return stdout + stderr
        })
        const tasks = sql<{ id: string }>`select id from deletion_tasks where organization_id = ${organization}`
        const before = yield* tasks
        const refused = yield* send(`whsec_${Buffer.alloc(24).toString("base64")}`)
        assert.match(refused, /webhook-signature does not match|401/)
        assert.deepStrictEqual(yield* tasks, before)
        const accepted = yield* send(Redacted.value(secret))
        assert.include(accepted, `"status":"scheduled"`)
        const [, id = ""] = /"task_id":"([^"]+)"/.exec(accepted) ?? []
        assert.sameDeepMembers([...(yield* tasks)], [...before, { id }])
      })
  )
})
