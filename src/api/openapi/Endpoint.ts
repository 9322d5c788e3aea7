/** The documentation of an endpoint. */
import { Record, String as Text } from "effect"
import { OpenApi } from "effect/http-api"

/** A name such as `charge-payments` as one of a type: `ChargePayments`. */
export const typeName = (name: string) => name.split("-").map(Text.capitalize).join("")

/** The documentation of the responses of a status. */
export interface Status {
  readonly description?: string
  /** An example of its body; by default, made of the examples of its schema. */
  readonly example?: unknown
}

interface Documentation {
  /** The resource and the verb: the names of methods in generated clients. */
  readonly operation: readonly [resource: string, verb: string]
  readonly summary: string
  readonly description: string
  /** True if the contract shows the endpoint; by default, its shape is provisional. */
  readonly isContract?: boolean
  /** A body that gets a 200 on the demo data, for its first organization. */
  readonly request?: object
  /** The documentation of its statuses, where that of the API does not fit. */
  readonly statuses?: Readonly<Record<string, Status>>
}

/** A named example of a request: pages that send requests look for named ones. */
export const sent = (value: unknown) => ({ examples: { demo: { summary: "On the demo data", value } } })

export const annotations = ({ isContract = false, operation, request, statuses = {}, ...texts }: Documentation) =>
  OpenApi.annotations({
    identifier: `${Text.uncapitalize(typeName(operation[0]))}.${operation[1]}`,
    ...texts,
    override: isContract ? undefined : { "x-provisional": true },
    transform: ({ requestBody, responses, ...documented }) => ({
      ...documented,
      ...(request && {
        requestBody: {
          ...requestBody,
          content: Record.map<string, object, object>(requestBody.content, (media) => ({ ...media, ...sent(request) }))
        }
      }),
      // The document of the API moves each example beside its schema.
      responses: Record.map<string, OpenApi.OpenApiSpecResponse, object>(responses, (response, status) => ({
        ...response,
        ...statuses[status]
      }))
    })
  })
