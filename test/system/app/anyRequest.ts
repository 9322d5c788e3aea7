/** Whatever is sent, the program answers as documented and goes on. */
import { assert } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { tries } from "../../support/tries.ts"
import { json } from "../../support/Client.ts"
import { generated, type Generated } from "../../support/requests.ts"
import { Service, type Tests } from "../../support/Service.ts"

const Detail = Schema.Struct({ detail: Schema.NonEmptyString })

const Faults = Schema.Struct({
  detail: Schema.NonEmptyArray(
    Schema.Struct({
      loc: Schema.NonEmptyArray(Schema.Union([Schema.String, Schema.Int])),
      msg: Schema.NonEmptyString,
      type: Schema.NonEmptyString
    })
  )
})

const Record = Schema.Record(Schema.String, Schema.Unknown)

const bodies = {
  page: Schema.Struct({ body: Schema.Array(Record) }),
  changes: Schema.Struct({
    body: Schema.Array(Record),
    removed: Schema.Array(Schema.String),
    cursor: Schema.String,
    has_more: Schema.Boolean
  }),
  processorPage: Schema.Struct({ data: Schema.Array(Record), has_more: Schema.Boolean }),
  record: Record,
  detail: Detail,
  faults: Faults
} as const

const strictly = { onExcessProperty: "error" } as const
const decodeDetail = Schema.decodeUnknownEffect(Schema.fromJsonString(bodies.detail), strictly)
const decodeFaults = Schema.decodeUnknownEffect(Schema.fromJsonString(bodies.faults), strictly)
const decodeProcessorPage = Schema.decodeUnknownEffect(Schema.fromJsonString(bodies.processorPage), strictly)
const decodePage = Schema.decodeUnknownEffect(Schema.fromJsonString(bodies.page), strictly)
const decodeChanges = Schema.decodeUnknownEffect(Schema.fromJsonString(bodies.changes), strictly)
const decodeRecord = Schema.decodeUnknownEffect(Schema.fromJsonString(bodies.record), strictly)

const isDocumented = ({ endpoint }: Generated, status: number, text: string) =>
  Effect.gen(function* () {
    if (status === 422) return void (yield* decodeFaults(text))
    if (status !== 200) return void (yield* decodeDetail(text))
    if (endpoint.kind === "processor") return void (yield* decodeProcessorPage(text))
    // There is no task to get.
    if (!("resource" in endpoint)) return void (yield* decodePage(text))
    const recordsOf = {
      get: Effect.map(decodeRecord(text), (record) => [record]),
      search: Effect.map(decodePage(text), ({ body }) => body),
      changes: Effect.map(decodeChanges(text), ({ body }) => body)
    }
    const records = yield* recordsOf[endpoint.kind]
    for (const record of records) assert.deepStrictEqual(Object.keys(record), Object.keys(endpoint.resource.fields))
  })

export const anyRequest = (it: Tests) => {
  for (const { often, options } of tries({ few: 40, many: 1200, concurrency: 8, size: 20 }))
    it.effect.prop(
      `any request to any endpoint is answered with a documented status and body, and so is the next one${often}`,
      [generated],
      ([request]) =>
        Effect.gen(function* () {
          const client = yield* Service
          const { kind, endpoint, headers, body, chunked, statuses } = request
          const { status, text } = yield* client.call({ path: `/api/v3${endpoint.path}`, headers, body, chunked })
          const what = () => `${kind} ${endpoint.path} ${json(body.slice(0, 2000))} ${json(headers)}: ${status} ${text}`
          assert.include(statuses, status, what())
          yield* isDocumented(request, status, text)
          assert.notInclude(text, "harbor_")
          const next = yield* client.ask("/organization/get")
          assert.strictEqual(next.status, 200)
        }),
      options
    )
}
