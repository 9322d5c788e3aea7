/** Printed texts from elsewhere: of a server that may not be ours, and of arguments. No control in them is printed. */
import { createServer } from "node:http"
import { assert, it as test, layer } from "@effect/vitest"
import { Arbitrary, Context, Effect, Layer, Schema } from "effect"
import { json } from "../../support/Client.ts"
import { programArgs, runWith } from "../../support/cli.ts"
import * as Listening from "../../support/Listening.ts"
import { root, temporaryFolder } from "../../support/Process.ts"
import { run } from "../../support/run.ts"
import { migratedDatabase } from "../../support/TestDatabase.ts"
import { tries } from "../../support/tries.ts"

const forged = "FORGED"

const pieces = [
  `\n${forged}`,
  `\r${forged}`,
  "\u001b[2J",
  "\u001b]52;c;eA==\u0007",
  "\u009b31m",
  "\ud800",
  ...[0, 9, 0x1f, 0x7f, 0x85, 0x9f, 0x200e, 0x2028, 0x202e, 0x2066, 0x2069].map((code) => String.fromCharCode(code))
]

const hostile = Arbitrary.map(
  Arbitrary.array(Arbitrary.schema(Schema.Literals(pieces)), { minLength: 1, maxLength: 8 }),
  (found) => `a${found.join("")}z`
)

/** Nothing but line ends of the command's own. */
const isHarmless = (printed: string) => {
  for (const line of printed.split("\n")) {
    assert.notMatch(line, /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}\p{Bidi_C}]/u, JSON.stringify(line))
    assert.isFalse(line.trimStart().startsWith(forged), printed)
  }
}

interface Reply {
  readonly status: number
  readonly body: string
  readonly headers?: Readonly<Record<string, string>>
}

/** A service that responds with the reply that it is given. */
class Liar extends Context.Service<Liar, { url: string; reply: Reply }>()(
  "practice-data/test/integration/cli/Printed/Liar"
) {
  static readonly layer = Layer.effect(
    Liar,
    Effect.gen(function* () {
      const liar = Liar.of({ url: "", reply: { status: 200, body: "{}" } })
      const server = createServer((request, response) => {
        const { body, headers, status } = liar.reply
        const all = { "content-type": "application/json", connection: "close", ...headers }
        request.resume().once("end", () => response.writeHead(status, all).end(body))
      })
      liar.url = `http://127.0.0.1:${(yield* Listening.on(server)).port}`
      return liar
    })
  )
}

const codes: Readonly<Record<number, string>> = {
  400: "org_mismatch",
  401: "unauthorized",
  404: "record_not_found",
  422: "request_invalid"
}

/** The headers by which a client knows an error of the service. */
const ours = (status: number) => ({
  "x-error": codes[status] ?? "none",
  "www-authenticate": "Bearer"
})

const says = (reply: Reply, ...command: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const liar = yield* Liar
    liar.reply = reply
    const ended = yield* runWith({ PRACTICE_DATA_URL: liar.url, PRACTICE_DATA_API_KEY: "s3cret" }, command)
    isHarmless(ended.stdout + ended.stderr)
    assert.notInclude(ended.stdout + ended.stderr, "s3cret")
    return ended
  })

layer(Liar.layer, { excludeTestServices: true })("Whatever a service says,", (it) => {
  it.effect.each([
    [401, "sqlite:/nowhere/copy.db", 1, "401"],
    [200, "postgres://someone:s3cret@127.0.0.1:1/nothing", 75, "127.0.0.1:1"]
  ] as const)("where it responds with %i, a sync to %s ends with %i", ([status, target, code, reason]) =>
    Effect.gen(function* () {
      const time = "2026-01-31T09:30:00.000Z"
      const body = status === 200 ? { id: "org", name: null, created_at: time, updated_at: time } : { detail: "No" }
      const { stderr, ...ended } = yield* says({ status, body: json(body), headers: ours(status) }, "sync", target)
      assert.deepStrictEqual(ended, { code, stdout: "" })
      assert.include(stderr, reason)
    })
  )

  for (const { often, options } of tries({ few: 3, many: 20 })) {
    it.effect.prop(
      `no control but the command's own line ends is printed${often}`,
      { text: hostile },
      ({ text }) =>
        Effect.gen(function* () {
          const target = `sqlite:${yield* temporaryFolder}/copy.db`
          const faults = json({ detail: [{ loc: ["body", text], msg: text, type: text }] })
          for (const reply of [
            ...[400, 401, 404].map((status) => ({ status, body: json({ detail: text }), headers: ours(status) })),
            { status: 422, body: faults, headers: ours(422) },
            { status: 404, body: json({ detail: text }) },
            { status: 200, body: text },
            { status: 302, body: "", headers: { location: "/\u009b31m\u0085" } }
          ]) {
            const { code, stdout } = yield* says(reply, "sync", target)
            assert.deepStrictEqual({ code, stdout }, { code: "x-error" in (reply.headers ?? {}) ? 1 : 75, stdout: "" })
          }
        }),
      options
    )
  }
})

test.effect.each(["\u001b[31m", "sync \u001b]0;x\u0007", "tasks show \u009b31m"])(
  "A usage error repeats an argument without its controls: %j",
  (command) =>
    Effect.map(runWith({}, command.split(" ")), ({ code, stderr, stdout }) => {
      assert.strictEqual(code, 2)
      isHarmless(stdout + stderr)
    })
)

test.live("A key or a secret whose output is lost is named, so that it can be revoked", () =>
  Effect.gen(function* () {
    const env = { ...process.env, DATABASE_URL: yield* migratedDatabase }
    for (const made of ["keys create --organization o --name n", "secrets add --organization o"]) {
      const script = ["-c", '"$@" > /dev/full', "sh", ...programArgs, ...made.split(" ")]
      const { code, stderr } = yield* run("sh", script, { cwd: root, env })
      assert.strictEqual(code, 1)
      assert.match(stderr, /^Created (key|secret)_\w+ for o\./)
    }
  })
)

test.live("A command that did its work ends with 0, also if standard error cannot be written", () =>
  Effect.gen(function* () {
    const env = { ...process.env, DATABASE_URL: yield* migratedDatabase }
    const command = "keys create --organization o --name n".split(" ")
    const script = ["-c", '"$@" 2> /dev/full', "sh", ...programArgs, ...command]
    const { code, stdout } = yield* run("sh", script, { cwd: root, env })
    assert.strictEqual(code, 0)
    assert.match(stdout, /^pda_live_\w+\n$/)
  })
)
