/** The process of the senders: see Senders.ts. */
import { Deferred, Effect } from "effect"
import { headersOf } from "../../../test/blackbox/support/Client.ts"
import * as Child from "../support/Child.ts"
import * as Http1 from "../support/Http1.ts"
import { type Kind, kinds } from "./bodies.ts"
import { Plan, Report } from "./Senders.ts"

const chunked = (body: Uint8Array, size: number) => {
  const count = Math.ceil(body.length / size)
  const parts = Array.from({ length: count }, (_, index) => {
    const part = body.subarray(index * size, (index + 1) * size)
    return Buffer.concat([Buffer.from(`${part.length.toString(16)}\r\n`), part, Buffer.from("\r\n")])
  })
  return Buffer.concat([...parts, Buffer.from("0\r\n\r\n")])
}

const targets = {
  intake: (sender: number, seed: number) => ({
    path: "/api/v1/invoice-deletions",
    headers: {
      "content-type": "application/json",
      "idempotency-key": `hostile-${seed}-${sender}`,
      "x-organization-id": "org_harbor"
    }
  }),
  "data-api": () => ({ path: "/api/v3/consumption-logs/search", headers: headersOf("oakridge") })
}

const requestOf = (kind: Kind, body: Uint8Array, sender: number, seed: number) => {
  const { path, headers } = targets[kind.to](sender, seed)
  const all = { ...headers, ...kind.headers }
  if (kind.chunk === undefined) return Http1.bytesOf({ path, headers: all, body })
  const lines = Object.entries({ host: "127.0.0.1", "transfer-encoding": "chunked", ...all })
  const head = lines.map(([name, value]) => `${name}: ${value}\r\n`).join("")
  return Buffer.concat([Buffer.from(`POST ${path} HTTP/1.1\r\n${head}\r\n`), body])
}

const work = Effect.fnUntraced(function* (plan: Plan, stopped: Deferred.Deferred<void>) {
  const kind = kinds.find(({ name }) => name === plan.kind) ?? kinds[0]
  if (kind === undefined) return yield* Effect.die("There are no kinds of bodies")
  const plain = Buffer.from(kind.body(plan.seed))
  const body = kind.chunk === undefined ? plain : chunked(plain, kind.chunk)
  const requests = Array.from({ length: plan.readers + plan.silent }, (_, sender) =>
    requestOf(kind, body, sender, plan.seed)
  )
  const statuses: Array<number> = []
  let sent = 0
  let closed = 0
  let answerBytes = 0
  const expected = plan.readers * plan.times

  const reader = (request: Uint8Array) =>
    Effect.gen(function* () {
      const connection = yield* Http1.open(plan.port)
      sent += 1
      const reply = yield* connection.ask(request)
      statuses.push(reply.status)
      answerBytes = Math.max(answerBytes, reply.bytes)
      yield* connection.close
    }).pipe(
      Effect.catch(() => Effect.sync(() => void (closed += 1))),
      Effect.repeat({ times: plan.times - 1 })
    )
  const silent = (request: Uint8Array) =>
    Effect.gen(function* () {
      const { socket } = yield* Http1.open(plan.port)
      socket.pause()
      sent += 2
      socket.write(request)
      socket.write(request)
    }).pipe(Effect.ignore)

  yield* Effect.forEach(requests.slice(plan.readers), silent, { concurrency: "unbounded", discard: true })
  const reading = Effect.forEach(requests.slice(0, plan.readers), reader, { concurrency: "unbounded", discard: true })
  yield* Effect.raceAllFirst([reading, Deferred.await(stopped), Effect.sleep(plan.during)])
  return {
    requestBytes: requests[0]?.length ?? 0,
    sent,
    statuses,
    closed,
    answerBytes,
    unanswered: expected - statuses.length - closed
  }
})

Child.main({ plan: Plan, report: Report }, work)
