/** The log of the started program: a request leads to its lines, and a reader that hangs holds nothing up. */
import { spawn } from "node:child_process"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Duration, Effect, Schema } from "effect"
import { inTime } from "../../support/inTime.ts"
import { long } from "../../support/tries.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Raw from "../../support/Raw.ts"
import { startUsed } from "../../support/usedFolder.ts"

const Line = Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))
const decode = Schema.decodeEffect(Line)

const linesOf = (output: string) => Effect.forEach(output.split("\n").slice(0, -1), (line) => decode(line))

const json = { LOG_FORMAT: "json" }

describe.concurrent("The log of the program", long, () => {
  it.live("has whole lines of JSON alone, and one of each request under its id, when the program stops at once", () =>
    Effect.gen(function* () {
      const { address, ended, kill, stdout } = yield* startUsed({ ...json, DELETION_DELAY: "0 seconds" })
      const client = yield* Client.make(yield* address)
      const answers = yield* Effect.forEach(
        Array.from({ length: 200 }, (_, index) => `mine-${index}`),
        (id) =>
          client.call({
            path: "/api/v3/charges/search",
            headers: { ...Client.headersOf("oakridge"), "x-request-id": id },
            body: '{"limit":1}'
          }),
        { concurrency: 8 }
      )
      yield* kill("SIGTERM")
      yield* ended
      const lines = yield* linesOf(stdout())
      assert.match(String(lines[0]?.["message"]), /^Listening on http/)
      const requests = lines.filter(({ message }) => message === "Request")
      const found = requests.filter((line) => String(line["request_id"]).startsWith("mine-"))
      assert.strictEqual(new Set(found.map((line) => line["request_id"])).size, answers.length)
      assert.strictEqual(found.length, answers.length)
    })
  )

  it.live("has one line of a request whose body did not arrive in time", () =>
    Effect.gen(function* () {
      const { address, stdout } = yield* startUsed({ ...json, BODY_TIMEOUT: "1 second" })
      const head =
        "POST /api/v3/charges/search HTTP/1.1\r\nhost: x\r\nauthorization: Bearer pda_demo_oakridge\r\n" +
        "content-type: application/json\r\nx-request-id: late\r\ncontent-length: 100\r\n\r\n{"
      assert.match(yield* Raw.exchange(yield* address, head), /^HTTP\/1.1 408 /)
      const client = yield* Client.make(yield* address)
      yield* client.ask("/clinics/search")
      yield* eventually(
        "the line of the next request",
        Effect.sync(() => stdout().includes("/api/v3/clinics/search"))
      )
      const lines = (yield* linesOf(stdout())).filter((line) => line["path"] === "/api/v3/charges/search")
      assert.deepStrictEqual(
        lines.map((line) => [line["request_id"], line["status"], line["refusal"]]),
        [["late", 408, "timeout"]]
      )
    })
  )

  it.live("says of a delivery what became of it, under its key and the id of its task", () =>
    Effect.gen(function* () {
      const { address, stdout } = yield* startUsed({ ...json, DELETION_DELAY: "0 seconds" })
      const client = yield* Client.make(yield* address)
      const { status } = yield* client.call({
        path: "/api/v1/invoice-deletions",
        headers: { "content-type": "application/json", "idempotency-key": "k1", "x-organization-id": "org_oakridge" },
        body: '{"invoices":[{"invoice_id":"invoice_oakridge_0001"}]}'
      })
      assert.strictEqual(status, 202)
      yield* eventually(
        "the line of the run",
        Effect.sync(() => stdout().includes("A deletion task is completed"))
      )
      const lines = (yield* linesOf(stdout())).filter((line) => line["idempotency_key"] === "k1")
      assert.deepStrictEqual(
        lines.map((line) => [
          line["message"],
          line["outcome"] ?? line["result"],
          line["task_id"] === lines[0]?.["task_id"]
        ]),
        [
          ["Request", "scheduled", true],
          ["A deletion task is completed", "completed", true]
        ]
      )
    })
  )
})

const root = join(import.meta.dirname, "../../..")
const longText = "x".repeat(250)
const requests = 9000

/** A program whose standard output nobody reads from when its address is known until it is read to the end. */
const unread = Effect.acquireRelease(
  Effect.callback<{ readonly address: string; readonly child: ReturnType<typeof spawn>; readonly rest: () => string }>(
    (resume) => {
      const child = spawn(join(root, "node_modules/.bin/node"), [join(root, "src/main.ts")], {
        env: { ...json, DATA_DIR: "memory", HOST: "127.0.0.1", PORT: "0", DRAIN: "0 seconds" },
        stdio: ["ignore", "pipe", "inherit"]
      })
      let text = ""
      let address: string | undefined
      child.stdout.setEncoding("utf8").on("data", (more: string) => {
        text += more
        if (address !== undefined) return
        address = /Listening on (http:[^"]+)/.exec(text)?.[1]
        if (address === undefined) return
        child.stdout.pause()
        resume(Effect.succeed({ address, child, rest: () => text }))
      })
    }
  ),
  ({ child }) => Effect.sync(() => child.kill("SIGKILL"))
)

it.live(
  "A reader of standard output that hangs costs log lines, and not an answer, nor memory without bounds, nor the stop",
  () =>
    Effect.gen(function* () {
      const { address, child, rest } = yield* unread
      const client = yield* Client.make(address)
      const ask = client.call({ path: `/${longText}`, method: "GET", headers: { "user-agent": longText } })
      yield* Effect.replicateEffect(ask, requests, { concurrency: 16, discard: true })
      const [took, { status }] = yield* Effect.timed(client.ask("/charges/search"))
      assert.strictEqual(status, 200)
      assert.isBelow(Duration.toSeconds(took), inTime(1))
      child.stdout?.resume()
      yield* eventually(
        "the line of what was dropped",
        Effect.sync(() => rest().includes("Log lines were dropped"))
      )
      yield* client.ask("/clinics/search")
      yield* eventually(
        "a line after it",
        Effect.sync(() => rest().includes("/api/v3/clinics/search"))
      )
      const lines = yield* linesOf(rest())
      const dropped = lines.find((line) => "lines" in line)
      const logged = lines.filter((line) => line["message"] === "Request")
      assert.isAbove(Number(dropped?.["lines"]), 0)
      assert.strictEqual(logged.length + Number(dropped?.["lines"]), requests + 2)
    }),
  long
)
