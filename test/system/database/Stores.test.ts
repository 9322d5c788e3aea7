/**
 * The stores of API keys and of records, cut off one at a time, and back.
 *
 * @module-tag long
 */
import { assert, describe, it } from "@effect/vitest"
import { Array, Duration, Effect, Layer } from "effect"
import { inTime } from "../../support/inTime.ts"
import { TestDatabase } from "../../support/TestDatabase.ts"
import * as Client from "../../support/Client.ts"
import { eventually } from "../../support/eventually.ts"
import * as Process from "../../support/Process.ts"
import * as TcpProxy from "../../support/TcpProxy.ts"

/** How many requests are under way at the same time. */
const atOnce = 200

/** A database for one test alone. */
const ownDatabase = Layer.fresh(TestDatabase.layerDemo)

const through = Effect.fnUntraced(function* (database: string) {
  const url = new URL(database)
  const proxy = yield* TcpProxy.make({ host: url.hostname, port: Number(url.port) })
  url.host = `${proxy.host}:${proxy.port}`
  return { proxy, url: url.href }
})

/** The program, with a proxy of its own before each of its stores. */
const program = Effect.gen(function* () {
  const { url } = yield* TestDatabase
  const records = yield* through(url)
  const credentials = yield* through(url)
  const { address, output } = yield* Process.start({
    DATABASE_URL: records.url,
    CREDENTIALS_DATABASE_URL: credentials.url
  })
  const client = yield* Client.make(yield* address, atOnce)
  return { client, output, credentials: credentials.proxy, records: records.proxy }
})

const isDown = ({ status, headers, text }: Client.Answer) => {
  assert.strictEqual(status, 503, text)
  assert.match(text, /^\{"detail":"[^"]+"\}$/)
  assert.match(String(headers["retry-after"]), /^[1-9]\d*$/)
}

/** The answers to a number of reads at once, each with the time that it took in seconds. */
const askAtOnce = (client: Client.Client, count: number, organization: Client.Organization = "oakridge") =>
  Effect.forEach(
    Array.makeBy(count, () => "/charges/search"),
    (path) =>
      Effect.map(Effect.timed(client.ask(path, { limit: 1 }, organization)), ([took, answer]) => ({
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

/** Comes back by itself, within two seconds. */
const recovers = (client: Client.Client) =>
  Effect.gen(function* () {
    const isUp = Effect.map(client.ask("/charges/search"), ({ status }) => {
      assert.include([200, 503], status)
      return status === 200
    })
    const [took] = yield* Effect.timed(eventually("a successful read", isUp))
    assert.isBelow(Duration.toSeconds(took), inTime(2))
    const afterwards = yield* askAtOnce(Client.patient(client), 20)
    assert.deepStrictEqual([...new Set(afterwards.map(({ status, text }) => (status === 200 ? "200" : text)))], ["200"])
  })

const shares = { refuse: 400, swallow: 200, reset: 400 } as const

const loseCredentials = Effect.fnUntraced(function* (
  { client, credentials }: Effect.Success<typeof program>,
  cut: TcpProxy.Cut
) {
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

const loseRecords = Effect.fnUntraced(function* (
  { client, records }: Effect.Success<typeof program>,
  cut: TcpProxy.Cut
) {
  yield* askAtOnce(client, 20)
  yield* records.cut(cut)
  const charge = client.ask("/charges/get", { id: "charge_oakridge_0001" })
  const [answers, record] = yield* Effect.all([askAtOnce(client, 50), charge], { concurrency: 2 })
  for (const answer of answers) assert.isBelow(answer.took, inTime(8), cut)
  for (const answer of [...answers, record]) isDown(answer)
  assert.strictEqual((yield* unknownKey(Client.patient(client))).status, 401)
  assert.strictEqual((yield* client.ask("/charges/search", { limit: 0 })).status, 400)
  assert.strictEqual((yield* client.ask("/charges/search", { limit: "1" })).status, 422)
  yield* records.mend
  yield* recovers(client)
})

/** Asks far more often than there are connections to make. */
const asksInVain = Effect.fnUntraced(function* (started: Effect.Success<typeof program>, cut: TcpProxy.Cut) {
  const { client, records } = started
  yield* askAtOnce(client, 20)
  yield* records.cut(cut)
  for (const answer of yield* askAtOnce(client, 50)) isDown(answer)
  const before = records.attempts()
  const [took, answers] = yield* Effect.timed(askAtOnce(client, 2000))
  for (const answer of answers) isDown(answer)
  // Each of three pools is probed, a few times a second.
  assert.isBelow(records.attempts() - before, 30 + 20 * Duration.toSeconds(took))
  yield* records.mend
  yield* recovers(client)
})

const cutsByName = "refused, swallowed or reset"

describe.concurrent("A program that loses a store", () => {
  it.live(
    `answers 503 in time, and never 401, while its keys are out of reach (${cutsByName}), and recovers within 2 s`,
    () =>
      Effect.gen(function* () {
        const started = yield* program
        for (const cut of TcpProxy.cuts) yield* loseCredentials(started, cut)
      }).pipe(Effect.provide(ownDatabase))
  )

  it.live(
    `answers 503 while its records are out of reach (${cutsByName}), knows who asks, and recovers within 2 s`,
    () =>
      Effect.gen(function* () {
        const started = yield* program
        for (const cut of TcpProxy.cuts) yield* loseRecords(started, cut)
      }).pipe(Effect.provide(ownDatabase))
  )

  it.live("sends nobody to it: 2,000 requests cost few connections, and its log two lines an outage", () =>
    Effect.gen(function* () {
      const started = yield* program
      const cuts = ["reset", "swallow"] as const
      const lines = () => started.output().match(/The record store (?:cannot be reached|is back)/g) ?? []
      for (const [index, cut] of cuts.entries()) {
        yield* asksInVain(started, cut)
        yield* eventually(
          "the line that it is back",
          Effect.sync(() => lines().length === 2 * index + 2)
        )
      }
      const outage = ["The record store cannot be reached", "The record store is back"]
      assert.deepStrictEqual<ReadonlyArray<string>>(lines(), [...outage, ...outage])
    }).pipe(Effect.provide(ownDatabase))
  )
})
