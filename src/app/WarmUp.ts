/**
 * The warm-up: the data API serves pages to itself before the service responds to anyone, so that Node has compiled what
 * a page takes and the pool has connections. It takes no socket, and nothing of it is measured, logged or traced.
 */
import { duplexPair } from "node:stream"
import * as NodeHttpServer from "@effect/platform-node/NodeHttpServer"
import { Array, Context, Duration, Effect, Function, Schema, type Scope } from "effect"
import type { HttpServerRequest, HttpServerResponse } from "effect/http"
import { searchable } from "../api/records/index.ts"
import { rowsOf } from "../database/Columns.ts"
import { RecordDatabase } from "../database/Database.ts"
import { isMigrated } from "../database/Migrations.ts"
import { OrderedServer } from "../http/OrderedServer.ts"
import { forOrganization } from "../keys/AuthorizationServer.ts"
import { RequestObservers } from "../observability/RequestFacts.ts"
import { Traces } from "../observability/Tracing.ts"

/** The shortest and the longest warm-up, and the age of a process at which it should end, in milliseconds. */
const shortest = 200
const longest = 500
const age = 1300

const connections = 8

const second = Duration.seconds(1)
const limits = { maxConnections: 100, headersTimeout: second, bodyTimeout: second, idleTimeout: second } as const

const requestOf = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer pda_\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`

/** Pages of most resources, and a single record in each third request. */
const requests = searchable.flatMap(({ name }) => {
  const search = requestOf(`/api/v3/${name}/search`, '{"limit":100}')
  return [search, search, requestOf(`/api/v3/${name}/get`, '{"id":"unknown"}')]
})

/** Sends requests over connections of this process until a time. */
const send = (server: OrderedServer, until: number) =>
  Effect.callback<void>((resume) => {
    let sent = 0
    let open = connections
    const clients = Array.makeBy(connections, () => {
      const [client, side] = duplexPair()
      server.emit("connection", side)
      return { client: client.resume(), side }
    })
    const next = (client: (typeof clients)[number]["client"]) => {
      const request = requests[sent % requests.length]
      if (performance.now() < until && request !== undefined) {
        sent++
        client.write(request)
      } else {
        client.destroy()
        open--
        if (open === 0) resume(Effect.void)
      }
    }
    server.on("request", ({ socket }, response) => {
      const own = clients.find(({ side }) => Object.is(side, socket))
      if (own !== undefined) response.once("close", () => setImmediate(next, own.client))
    })
    for (const { client } of clients) next(client)
  })

const organizations = rowsOf(Schema.Struct({ id: Schema.String }))

/**
 * Serves pages of an organization to this process for half a second at most, if the database is migrated.
 *
 * @param references such as the loggers
 */
export const warmUp = Effect.fnUntraced(
  function* <E>(
    app: Effect.Effect<HttpServerResponse.HttpServerResponse, E, HttpServerRequest.HttpServerRequest | Scope.Scope>,
    references: Context.Context<never>
  ) {
    const sql = yield* RecordDatabase
    // The log begins with the address: nothing may wait for a database that is down, or go through its store.
    if (sql.route?.isFound() === false) return
    const first = organizations(sql`select organization_id as id from organizations limit 1`)
    const [isDone, [found]] = yield* Effect.timeout(Effect.all([isMigrated(sql), first]), longest)
    if (!isDone) return
    const begun = performance.now()
    const until = begun + Math.max(shortest, Math.min(longest, age - begun))
    const server = new OrderedServer(limits)
    const handler = yield* NodeHttpServer.makeHandler(forOrganization(app, found?.id ?? ""), {
      scope: yield* Effect.scope,
      middleware: Function.identity
    }).pipe(Effect.provideContext(Context.add(Context.add(references, RequestObservers, []), Traces, undefined)))
    server.on("request", handler)
    yield* Effect.timeoutOption(send(server, until), second)
  },
  Effect.scoped,
  (warming) => Effect.ignore(warming)
)
