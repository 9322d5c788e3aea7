/** The data API in this process: its routes over services of a test's choice, without a socket or a database. */
import { assert } from "@effect/vitest"
import { Context, Effect, Layer, Schema, type Scope } from "effect"
import { HttpEffect, HttpRouter, HttpServer, type HttpServerRequest } from "effect/http"
import type { Fault } from "../../src/api/Faults.ts"
import { accounts, organizations, recordsOf } from "../../src/app/demo/DemoData.ts"
import { demoTask } from "../../src/app/demo/Load.ts"
import { SenderTasks } from "../../src/deletions/SenderTasks.ts"
import { OrgResolver } from "../../src/keys/OrgResolver.ts"
import { PspClient } from "../../src/psp/PspClient.ts"
import { PspReads } from "../../src/psp/PspReads.ts"
import { Repositories, type Repository } from "../../src/records/Repository.ts"
import * as Server from "../../src/app/Server.ts"
import type * as Testing from "../../src/app/exports/testing.ts"
import { endpoints } from "../contract/Contract.ts"

const [oakridge, harbor] = organizations

/** The API key and the records of the organization on whose behalf these tests ask. */
export const { key } = oakridge
export const organization = `org_${oakridge.slug}`
export const demo = recordsOf(oakridge)
/** Those of another organization. */
export const other = { key: harbor.key, organization: `org_${harbor.slug}`, demo: recordsOf(harbor) }

/** What the routes need. */
export type ServiceLayer = Layer.Layer<Layer.Success<typeof Testing.servicesMemory>>

/** Which processor account each demo clinic has. */
const clinicAccounts = [...demo.clinics, ...other.demo.clinics].map((clinic) => ({
  organization: clinic.organization_id,
  clinic: clinic.id,
  account: clinic.processor_account ?? null
}))

/** Made once for all files of a worker: to encode the records takes longer than most files take. */
const repositories = Effect.runSync(
  Effect.cached(Effect.scoped(Layer.build(Repositories.layerMemory(demo, other.demo))))
)

/** In memory: all records of both demo organizations, their keys, and the demo processor. */
export const layerDemo = Layer.mergeAll(
  Layer.effectContext(repositories),
  OrgResolver.layerMemory({ [key]: organization, [other.key]: other.organization }),
  SenderTasks.layerMemory(organizations.map(demoTask)),
  PspReads.layerMemory(clinicAccounts, PspClient.layerMemory(accounts))
)

/** The same, where the repositories of some resources do something else. */
export const layerDemoBut = (names: ReadonlyArray<string>, methods: Pick<Repository, "search" | "get">) =>
  Layer.merge(
    layerDemo,
    Layer.effect(
      Repositories,
      Effect.map(Repositories, ({ changes, of }) =>
        Repositories.of({
          changes,
          of: (resource) => (names.includes(resource.name) ? { ...methods, resource } : of(resource))
        })
      )
    ).pipe(Layer.provide(layerDemo))
  )

/** The path of every endpoint. */
export const paths = endpoints.map(({ path }) => `/api/v3${path}`)

const routesOver = (services: ServiceLayer) =>
  Layer.provide(Layer.merge(Server.dataApiRoutes, Server.middleware), services)

/** A server, as a function. */
export class InProcess extends Context.Service<InProcess, (request: Request) => Promise<Response>>()(
  "practice-data/test/Http/inProcess"
) {
  /** Any routes. What they log and trace goes where this layer's own does. */
  static readonly layerOf = <E>(routes: Layer.Layer<never, E, Layer.Services<ReturnType<typeof routesOver>>>) =>
    Layer.effect(
      InProcess,
      Effect.gen(function* () {
        const handler = yield* HttpRouter.toHttpEffect(routes)
        const context = yield* Effect.context()
        return HttpEffect.toWebHandlerWith<never, HttpServerRequest.HttpServerRequest | Scope.Scope>(context)(handler)
      })
    ).pipe(Layer.provide(HttpServer.layerServices))

  /** The routes over services. */
  static readonly layer = (services: ServiceLayer = layerDemo) => InProcess.layerOf(routesOver(services))
}

/** A request: what differs from a well-formed search of charges. */
export interface Sent {
  readonly path?: string
  readonly method?: string
  /** Headers to add, or, where undefined, to leave out. */
  readonly headers?: Readonly<Record<string, string | undefined>>
  /** The body as a value. */
  readonly json?: unknown
  /** The body as it is sent. */
  readonly raw?: string | Uint8Array<ArrayBuffer> | ReadableStream<Uint8Array>
}

const Json = Schema.fromJsonString(Schema.Unknown)
const parse = Schema.decodeEffect(Json)
const encode = Schema.encodeEffect(Json)

/** A value as compact JSON. */
export const compact = (value: unknown) => Effect.orDie(encode(value))

const requestOf = Effect.fnUntraced(function* (sent: Sent) {
  const { path = "/api/v3/charges/search", method = "POST", headers = {}, json = {}, raw } = sent
  const all = { authorization: `Bearer ${key}`, "content-type": "application/json", ...headers }
  const body = raw ?? (yield* compact(json))
  return new Request(`http://localhost${path}`, {
    method,
    headers: Object.entries(all).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])),
    // Of a string, Request would set the content type.
    ...(["GET", "HEAD"].includes(method)
      ? {}
      : { body: typeof body === "string" ? new TextEncoder().encode(body) : body }),
    duplex: "half"
  })
})

/** Asks the server. Every error has a name. */
export const send = Effect.fnUntraced(function* (sent: Sent = {}) {
  const handle = yield* InProcess
  const request = yield* requestOf(sent)
  const response = yield* Effect.promise(() => handle(request))
  const headers = Object.fromEntries(response.headers)
  assert.match(headers["x-error"] ?? "none", response.status < 400 ? /^none$/ : /^(?!none)[a-z_]+$/)
  const bytes = new Uint8Array(yield* Effect.promise(() => response.arrayBuffer()))
  const text = new TextDecoder().decode(bytes)
  const { "content-encoding": encoding, "content-type": type = "" } = headers
  const isJson = type.startsWith("application/json") && encoding === undefined && text !== ""
  const json = isJson ? yield* Effect.orDie(parse(text)) : undefined
  return { status: response.status, headers, bytes, text, json }
})

/** Asserts the status of an answer and its JSON. */
export const expectAnswer = Effect.fnUntraced(function* (sent: Sent, status: number, json: unknown) {
  const answer = yield* send(sent)
  assert.deepStrictEqual([answer.status, answer.json], [status, json])
  return answer
})

/** The body of a 422 for faults of fields: each its name, or its place in the body, and its fault. */
export const invalid = (...found: ReadonlyArray<readonly [field: string | number, fault: Fault]>) => ({
  detail: found.map(([field, { msg, type }]) => ({ loc: ["body", field], msg, type }))
})
