/**
 * The stores of API keys and of records, cut off one at a time, and back.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Array, Duration, Effect, Layer } from "effect"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import { inTime } from "../../support/inTime.ts"
import * as Program from "../../support/Program.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"

/** The number of requests under way at once. */
const atOnce = 200

/** The program, with a proxy of its own before each of its stores. */
const program = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  const [records, credentials] = [yield* TcpProxy.through(url), yield* TcpProxy.through(url)]
  const environment = { DATABASE_URL: records.url, CREDENTIALS_DATABASE_URL: credentials.url }
  const { client, output } = yield* Program.start(environment, { connections: atOnce })
  return { client, output, credentials: credentials.proxy, records: records.proxy }
})

type Started = Effect.Success<typeof program>

const isDown = ({ status, headers, text }: Client.Answer) => {
  assert.strictEqual(status, 503, text)
  assert.match(text, /^\{"detail":"[^"]+"\}$/)
  assert.match(String(headers["retry-after"]), /^[1-9]\d*$/)
}

/** The responses to reads at once, each with its seconds. */
const askAtOnce = (client: Client.Client, count: number, organization: Client.Organization = "oakridge") =>
  Effect.forEach(
    Array.range(1, count),
    () =>
      Effect.map(Effect.timed(client.ask("/charges/search", { limit: 1 }, organization)), ([took, answer]) => ({
        ...answer,
        took: Duration.toSeconds(took)
      })),
    { concurrency: atOnce }
  )

const unknownKey = (client: Client.Client) =>
  client.call({
    path: "/api/v3/charges/search",
    headers: { ...Client.headersOf("oakridge"), authorization: "Bearer pda_demo_unknown" },
    body: "{}"
  })

/** The program is back by itself, within two seconds. */
const recovers = (client: Client.Client) =>
  Effect.gen(function* () {
    const isUp = Effect.map(client.ask("/charges/search"), ({ status }) => {
      assert.include([200, 503], status)
      return status === 200
    })
    assert.isBelow(yield* Program.secondsOf(eventually("a successful read", isUp)), inTime(2))
    for (const { status, text } of yield* askAtOnce(Client.patient(client), 20)) assert.strictEqual(status, 200, text)
  })

const shares = { refuse: 400, swallow: 200, reset: 400 } as const

const losesKeys = Effect.fnUntraced(function* ({ client, credentials }: Started, cut: TcpProxy.Cut) {
  yield* askAtOnce(client, atOnce)
  const [answers] = yield* Effect.all([askAtOnce(client, shares[cut]), credentials.cut(cut)], { concurrency: 2 })
  for (const answer of answers) {
    if (answer.status !== 200) isDown(answer)
    assert.isBelow(answer.took, inTime(2), cut)
  }
  const [others, unknown] = yield* Effect.all([askAtOnce(client, 10, "harbor"), unknownKey(client)], { concurrency: 2 })
  for (const answer of [...others, unknown]) isDown(answer)
  yield* credentials.mend
  yield* recovers(client)
  assert.strictEqual((yield* unknownKey(Client.patient(client))).status, 401)
})

const losesRecords = Effect.fnUntraced(function* ({ client, records }: Started, cut: TcpProxy.Cut) {
  yield* askAtOnce(client, 20)
  yield* records.cut(cut)
  const charge = client.ask("/charges/get", { id: "charge_oakridge_0001" })
  const [answers, record] = yield* Effect.all([askAtOnce(client, 50), charge], { concurrency: 2 })
  for (const answer of answers) assert.isBelow(answer.took, inTime(8), cut)
  for (const answer of [...answers, record]) isDown(answer)
  assert.strictEqual((yield* unknownKey(Client.patient(client))).status, 401)
  assert.strictEqual((yield* client.ask("/charges/search", { limit: 0 })).status, 400)
  yield* records.mend
  yield* recovers(client)
})

const cases = [
  ["its keys answers 503 in time, and never 401, and recovers within 2 s", losesKeys, TcpProxy.cuts],
  ["its records answers 503, knows who asks, and recovers within 2 s", losesRecords, TcpProxy.cuts]
] as const

describe.concurrent("A program that loses", () => {
  it.live.each(cases)("%s", ([, loses, cuts]) =>
    Effect.gen(function* () {
      const started = yield* program
      for (const cut of cuts) yield* loses(started, cut)
    }).pipe(Effect.provide(Layer.fresh(TestDatabase.layerDemo)))
  )
})
