/** What the contract and the decisions ask of the OpenAPI document, wherever it comes from. */
import { assert, beforeAll, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import {
  type Endpoint,
  endpoints,
  processorEndpoints,
  type RecordEndpoint,
  recordEndpoints,
  resources,
  taskEndpoints,
  taskFields
} from "./Contract.ts"
import { decode, type Document, namesOf, type Operation, schemasOf, worded } from "./Document.ts"

const isMarked = (stability: Endpoint["stability"], marked: boolean | undefined) =>
  assert.strictEqual(marked ?? false, stability === "provisional")

const bodyNameOf = ({ requestBody }: Operation) => requestBody.$ref.replace("#/components/requestBodies/", "")

/**
 * @param load the document as JSON
 */
export const documentSuite = <E>(name: string, load: Effect.Effect<unknown, E>) =>
  describe(name, () => {
    let document: Document
    let schemas: ReturnType<typeof schemasOf>

    beforeAll(() =>
      Effect.flatMap(load, decode).pipe(
        Effect.map((decoded) => {
          document = decoded
          schemas = schemasOf(document)
        }),
        Effect.runPromise
      )
    )

    const operationOf = ({ path }: Endpoint): Operation => {
      const operation = document.paths[path]?.["post"]
      assert.isDefined(operation, path)
      return operation
    }

    const requestOf = (endpoint: Endpoint) => {
      const body = document.components.requestBodies[bodyNameOf(operationOf(endpoint))]
      assert.isDefined(body, endpoint.path)
      return schemas.resolve(body.content["application/json"].schema)
    }

    const bodyOf = (endpoint: Endpoint, status: string) => {
      const response = operationOf(endpoint).responses[status]
      assert.isDefined(response, `${endpoint.path} ${status}`)
      return response.content["application/json"].schema
    }

    const recordOf = (endpoint: RecordEndpoint) => {
      const answer = schemas.resolve(bodyOf(endpoint, "200"))
      if (endpoint.kind === "get") return answer
      const parts = endpoint.kind === "search" ? ["body"] : ["body", "removed", "cursor", "has_more"]
      assert.deepStrictEqual(Object.keys(answer.properties ?? {}), parts)
      assert.deepStrictEqual(answer.required, parts)
      const page = answer.properties?.["body"]
      assert.strictEqual(page?.type, "array")
      assert.isDefined(page?.items)
      return schemas.resolve(page?.items ?? {})
    }

    it("is version 3.0 of the API, on OpenAPI 3, below /api/v3", () => {
      assert.match(document.openapi, /^3\.\d+\.\d+$/)
      assert.strictEqual(document.info.version, "3.0")
      assert.deepStrictEqual(
        document.servers.map(({ url }) => url),
        ["/api/v3"]
      )
    })

    it("has the paths of the contract and the decisions, each for POST alone, and no other", () => {
      const documented = Object.entries(document.paths).flatMap(([path, item]) =>
        Object.keys(item).map((method) => `${method} ${path}`)
      )
      assert.sameMembers(
        documented,
        endpoints.map(({ path }) => `post ${path}`)
      )
    })

    it("has one security scheme, the HTTP bearer", () => {
      const schemes = Object.values(document.components.securitySchemes).map(({ type, scheme }) => [
        type,
        scheme.toLowerCase()
      ])
      assert.deepStrictEqual(schemes, [["http", "bearer"]])
    })

    it("names the bodies of errors HTTPValidationError, ValidationError and ErrorDetail", () => {
      const { ErrorDetail, HTTPValidationError, ValidationError } = document.components.schemas
      const shapes = [ErrorDetail, HTTPValidationError, ValidationError].map((schema) => [
        Object.keys(schema?.properties ?? {}),
        schema?.required
      ])
      assert.deepStrictEqual(shapes, [
        [["detail"], ["detail"]],
        [["detail"], ["detail"]],
        [
          ["loc", "msg", "type"],
          ["loc", "msg", "type"]
        ]
      ])
      const faults = HTTPValidationError?.properties?.["detail"]
      assert.strictEqual(faults?.type, "array")
      assert.deepStrictEqual(namesOf(faults?.items ?? {}), ["ValidationError"])
      assert.strictEqual(schemas.typeOf(ErrorDetail?.properties?.["detail"] ?? {}), "string!")
      const loc = ValidationError?.properties?.["loc"]
      assert.deepStrictEqual(
        loc?.items?.anyOf?.map(({ type }) => type),
        ["string", "integer"]
      )
    })

    describe.for(endpoints)("$path", (endpoint) => {
      it("is marked provisional if and only if the contract does not show it", () =>
        isMarked(endpoint.stability, operationOf(endpoint)["x-provisional"]))

      it("requires the API key", () => {
        const [scheme = ""] = Object.keys(document.components.securitySchemes)
        assert.deepStrictEqual(operationOf(endpoint).security, [{ [scheme]: [] }])
      })

      it("answers with the documented statuses and no other", () => {
        const documented = Object.keys(operationOf(endpoint).responses)
        assert.sameMembers(documented, [...endpoint.listed, ...endpoint.decided])
      })

      it("marks as provisional the statuses that the contract does not list", () => {
        const { responses } = operationOf(endpoint)
        const marked = Object.keys(responses).filter((status) => responses[status]?.["x-provisional"] === true)
        assert.includeMembers(marked, [...endpoint.decided])
        if (endpoint.stability === "contract") assert.sameMembers(marked, [...endpoint.decided])
      })

      it("answers errors with a detail, and 422 with every fault", () => {
        const errors = [...endpoint.listed, ...endpoint.decided].filter((status) => status !== "200")
        for (const status of errors) {
          const names = new Set(namesOf(bodyOf(endpoint, status)))
          assert.deepStrictEqual([...names], [status === "422" ? "HTTPValidationError" : "ErrorDetail"], status)
        }
      })

      it("documents WWW-Authenticate with 401 and Retry-After with 503", () => {
        const headersOf = (status: string) =>
          Object.keys(operationOf(endpoint).responses[status]?.headers ?? {}).map((header) => header.toLowerCase())
        assert.include(headersOf("401"), "www-authenticate")
        assert.include(headersOf("503"), "retry-after")
      })

      it("takes its fields in order, each of its type, only an id or a clinic required and not null, and no other", () => {
        const request = requestOf(endpoint)
        const required = Object.entries(request.properties ?? {}).filter(
          ([, schema]) => !schemas.withoutNull(schema).nullable
        )
        assert.deepStrictEqual(
          required.map(([field]) => field),
          endpoint.required
        )
        const taken = Object.entries(request.properties ?? {}).map(([field, schema]) => {
          const type = schemas.typeOf(schema)
          return [field, endpoint.required.includes(field) ? type.replace("!", "") : type]
        })
        assert.deepStrictEqual(taken, Object.entries(endpoint.request))
        assert.deepStrictEqual(request.required ?? [], endpoint.required)
        assert.isFalse(request.additionalProperties)
      })
    })

    describe.for(recordEndpoints)("$path", (endpoint) => {
      it("answers the record's fields in order, each of its type and always present", () => {
        const record = recordOf(endpoint)
        const fields = Object.entries(record.properties ?? {}).map(([field, schema]) => [field, schemas.typeOf(schema)])
        const expected = Object.entries(endpoint.resource.fields).map(([field, type]) => [field, worded(type)])
        assert.deepStrictEqual(fields, expected)
        assert.deepStrictEqual(record.required, Object.keys(endpoint.resource.fields))
      })
    })

    describe.for(taskEndpoints)("$path", (endpoint) => {
      it("answers the task's fields in order, each of its type and always present, its request marked as provisional", () => {
        const answer = schemas.resolve(bodyOf(endpoint, "200"))
        const page = answer.properties?.["body"]
        const task = endpoint.kind === "get task" ? answer : schemas.resolve(page?.items ?? {})
        const fields = Object.entries(task.properties ?? {}).map(([field, schema]) => [field, schemas.typeOf(schema)])
        assert.deepStrictEqual(fields, Object.entries(taskFields))
        assert.deepStrictEqual(task.required, Object.keys(taskFields))
        assert.isTrue(task["x-provisional"])
      })
    })

    describe.for(processorEndpoints)("$path", (endpoint) => {
      it("answers objects of any fields, and whether there are more", () => {
        const page = schemas.resolve(bodyOf(endpoint, "200"))
        assert.deepStrictEqual(page.required, ["data", "has_more"])
        const { data, has_more } = page.properties ?? {}
        const item = schemas.resolve(data?.items ?? {})
        assert.deepStrictEqual([data?.type, item.type, has_more?.type], ["array", "object", "boolean"])
        assert.deepStrictEqual(
          Object.entries(item.properties ?? {}).map(([field, schema]) => [field, schemas.typeOf(schema)]),
          [
            ["id", "string!"],
            ["object", "string!"],
            ["created", "integer!"]
          ]
        )
        assert.notStrictEqual(item.additionalProperties, false)
      })

      it("documents the default of limit, and the bounds of times", () => {
        const rangeOf = (field: string) => {
          const { value } = schemas.withoutNull(requestOf(endpoint).properties?.[field] ?? {})
          return [value.minimum, value.maximum, value.default]
        }
        assert.deepStrictEqual(rangeOf("limit"), [1, undefined, 100])
        for (const field of ["created_gte", "created_lte"]) {
          assert.deepStrictEqual(rangeOf(field), [0, Number.MAX_SAFE_INTEGER, undefined])
        }
      })

      it("does not say that times fit into 32 bits", () => {
        for (const field of ["created_gte", "created_lte"]) {
          const { value } = schemas.withoutNull(requestOf(endpoint).properties?.[field] ?? {})
          assert.notStrictEqual(value.format, "int32", field)
        }
      })
    })

    it.for(endpoints.filter(({ request }) => "offset" in request))(
      "documents the range and the default of limit and offset of $path",
      (endpoint) => {
        const rangeOf = (field: string) => {
          const { value } = schemas.withoutNull(requestOf(endpoint).properties?.[field] ?? {})
          return [value.format, value.minimum, value.maximum, value.default]
        }
        assert.deepStrictEqual(rangeOf("limit"), ["int32", 1, 1000, 100])
        assert.deepStrictEqual(rangeOf("offset"), ["int32", 0, 2147483647, 0])
      }
    )

    it.for(resources)("marks the fields of $name as provisional if and only if they were decided", (resource) => {
      for (const endpoint of recordEndpoints.filter((candidate) => candidate.resource === resource)) {
        const record = recordOf(endpoint)
        for (const [field, schema] of Object.entries(record.properties ?? {})) {
          const marks = [record, schema, schemas.withoutNull(schema).value].map((marked) => marked["x-provisional"])
          assert.strictEqual(marks.includes(true), resource.record === "provisional", field)
        }
      }
    })
  })
