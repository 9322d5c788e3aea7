/**
 * What a sender of deletions does, with the documentation of the started program in hand: it signs a delivery by each of
 * the examples, and reads what became of one.
 */
import { execFile, spawnSync } from "node:child_process"
import { join } from "node:path"
import { writeFileSync } from "node:fs"
import { assert, layer } from "@effect/vitest"
import { Context, Effect, Layer, Redacted, Schema } from "effect"
import * as IntakeSecrets from "../../../src/deletions/IntakeSecrets.ts"
import { layerShared } from "../../../src/database/Database.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import * as Process from "../../support/Process.ts"
import { options } from "../../support/Service.ts"

/** A demo organization that requires signatures; the other one does not. */
const organization = "org_harbor"

const Document = Schema.fromJsonString(Schema.Struct({ info: Schema.Struct({ description: Schema.String }) }))

class Started extends Context.Service<
  Started,
  {
    readonly client: Client.Client
    readonly secret: Redacted.Redacted
    /** The examples of the served documentation, by their language. Of two, the last. */
    readonly examples: ReadonlyMap<string, string>
  }
>()("practice-data/test/system/deletions/Sender/Started") {
  static readonly layer = Layer.effect(
    Started,
    Effect.gen(function* () {
      const { url } = yield* TestDatabase
      const { secret } = yield* IntakeSecrets.create(organization)
      const { address } = yield* Process.start({ DATABASE_URL: url, DELETION_DELAY: "0s" })
      const client = yield* Client.make(yield* address)
      const { text } = yield* client.call({ path: "/api/v1/openapi.json", method: "GET", headers: {} })
      const { description } = (yield* Schema.decodeEffect(Document)(text)).info
      const blocks = [...description.matchAll(/^```(\w+)\n([^]*?)\n```$/gm)]
      return { client, secret, examples: new Map(blocks.map(([, language = "", code = ""]) => [language, code])) }
    })
  ).pipe(
    Layer.provide(Layer.unwrap(Effect.map(TestDatabase, ({ sql }) => layerShared(sql)))),
    Layer.provideMerge(TestDatabase.layerDemo)
  )
}

/** How each example is run, and the programs that it needs. */
const languages = [{ language: "sh", file: "send.sh", command: "sh", needs: ["sh", "curl", "openssl", "od"] }] as const

const lacks = (needs: ReadonlyArray<string>) =>
  needs.filter((program) => spawnSync(program, ["--version"]).error !== undefined)

/** Runs an example as it stands: its output, standard error included. */
const run = Effect.fnUntraced(function* (
  { command, file, language }: (typeof languages)[number],
  secret: Redacted.Redacted
) {
  const { client, examples } = yield* Started
  const folder = yield* Process.temporaryFolder
  const path = join(folder, file)
  writeFileSync(path, examples.get(language) ?? "")
  const env = {
    ...process.env,
    INTAKE: `${client.address}/api/v1`,
    ORGANIZATION: organization,
    SECRET: Redacted.value(secret)
  }
  return yield* Effect.callback<string>((resume) => {
    execFile(command, [path], { cwd: folder, env, timeout: 60_000 }, (_, stdout, stderr) =>
      resume(Effect.succeed(`${stdout}${stderr}`))
    )
  })
})

const tasksOf = (owner: string) =>
  Effect.flatMap(TestDatabase, ({ sql }) => sql`select id from deletion_tasks where organization_id = ${owner}`)

layer(Started.layer, options)("A sender", (it) => {
  for (const each of languages) {
    const lacking = lacks(each.needs)
    it.effect.skipIf(lacking.length > 0)(
      `has its delivery accepted, signed by the documented example, and refused with another secret: ${each.language}${lacking.map((program) => ` (no ${program} here)`).join("")}`,
      () =>
        Effect.gen(function* () {
          const { secret } = yield* Started
          const before = yield* tasksOf(organization)
          const refused = yield* run(each, Redacted.make(`whsec_${Buffer.alloc(24).toString("base64")}`))
          assert.match(refused, /webhook-signature does not match|401/)
          assert.lengthOf(yield* tasksOf(organization), before.length)
          const accepted = yield* run(each, secret)
          assert.include(accepted, `"status":"scheduled"`)
          const after = yield* tasksOf(organization)
          assert.lengthOf(after, before.length + 1)
          const [, id = ""] = /"task_id":"([^"]+)"/.exec(accepted) ?? []
          assert.include(
            after.map((task) => task["id"]),
            id
          )
        })
    )
  }
})
