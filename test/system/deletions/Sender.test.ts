/**
 * The documented example of a sender, against the started program.
 *
 * @module-tag long
 */
import { spawnSync } from "node:child_process"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import * as SigningSecrets from "../../../src/keys/SigningSecrets.ts"
import { TaskDatabase } from "../../../src/database/Database.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import * as Process from "../../support/Process.ts"
import { run as runCommand } from "../../support/run.ts"
import { live } from "../../support/tries.ts"

/** A demo organization that requires signatures; the other one does not. */
const organization = "org_harbor"

const Document = Schema.fromJsonString(Schema.Struct({ info: Schema.Struct({ description: Schema.String }) }))

class Started extends Context.Service<
  Started,
  {
    readonly client: Client.Client
    readonly secret: Redacted.Redacted
    /** The shell script of the served documentation. Of two, the last. */
    readonly example: string
  }
>()("practice-data/test/system/deletions/Sender/Started") {
  static readonly layer = Layer.effect(
    Started,
    Effect.gen(function* () {
      const { sql, url } = yield* TestDatabase
      const { secret } = yield* Effect.provideService(SigningSecrets.create(organization), TaskDatabase, sql)
      const { address } = yield* Process.start({ DATABASE_URL: url, DELETION_DELAY: "0s" })
      const client = yield* Client.make(yield* address)
      const { text } = yield* client.call({ path: "/api/v1/openapi.json", method: "GET", headers: {} })
      const { description } = (yield* Schema.decodeEffect(Document)(text)).info
      const [, example = ""] = [...description.matchAll(/^```sh\n([^]*?)\n```$/gm)].at(-1) ?? []
      return { client, secret, example }
    })
  ).pipe(Layer.provideMerge(TestDatabase.layerDemo))
}

const lacking = ["sh", "curl", "openssl", "od"].filter(
  (program) => spawnSync(program, ["--version"]).error !== undefined
)

/** Runs the example as it stands: its output, standard error included. */
const run = Effect.fnUntraced(function* (secret: Redacted.Redacted) {
  const { client, example } = yield* Started
  const env = {
    ...process.env,
    INTAKE: `${client.address}/api/v1`,
    ORGANIZATION: organization,
    SECRET: Redacted.value(secret)
  }
  const cwd = yield* Process.temporaryFolder
  const { stderr, stdout } = yield* runCommand("sh", ["-c", example], { cwd, env, timeout: 60_000 })
  return stdout + stderr
})

const idsOfTasks = Effect.flatMap(TestDatabase, ({ sql }) =>
  Effect.map(sql`select id from deletion_tasks where organization_id = ${organization}`, (tasks) =>
    tasks.map(({ id }) => id)
  )
)

layer(Started.layer, live)("A sender", (it) => {
  it.effect.skipIf(lacking.length > 0)(
    `has its delivery accepted, signed by the documented example, and refused with another secret${lacking.map((program) => ` (no ${program} here)`).join("")}`,
    () =>
      Effect.gen(function* () {
        const before = yield* idsOfTasks
        const refused = yield* run(Redacted.make(`whsec_${Buffer.alloc(24).toString("base64")}`))
        assert.match(refused, /webhook-signature does not match|401/)
        assert.sameMembers(yield* idsOfTasks, before)
        const accepted = yield* run((yield* Started).secret)
        assert.include(accepted, `"status":"scheduled"`)
        const [, id] = /"task_id":"([^"]+)"/.exec(accepted) ?? []
        assert.sameMembers(yield* idsOfTasks, [...before, id])
      })
  )
})
