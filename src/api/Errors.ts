/**
 * The public errors of the service: a class for each reason, with its HTTP status and its text. `responses` gives the
 * form that a client gets: `{ detail }`, and the headers that the client needs.
 */
import { Array, Duration, Effect, Record, Schema, String as Text } from "effect"
import { HttpServerResponse } from "effect/http"
import { HttpApiSchema } from "effect/http-api"

export const ErrorDetail = Schema.Struct({
  detail: Schema.String.annotate({ description: "A human-readable message." })
}).annotate({ identifier: "ErrorDetail" })

/** One fault of a request: where it is, what is wrong, and the kind of the fault for a program to act on. */
export const ValidationError = Schema.Struct({
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Int])).annotate({
    description:
      "The location of the fault: `body`, `header` or `query`, then names and array positions. Names over 64 characters are truncated."
  }),
  msg: Schema.String.annotate({ description: "A human-readable message." }),
  type: Schema.String.annotate({ description: "The kind of the fault, such as `string_type`." })
}).annotate({ identifier: "ValidationError" })
export type ValidationError = typeof ValidationError.Type

/** The body of a 422: the faults of the request, all at once, up to a hundred. */
export const HTTPValidationError = Schema.Struct({ detail: Schema.Array(ValidationError) }).annotate({
  identifier: "HTTPValidationError",
  description:
    "The faults of the request, in the order of the endpoint's fields, unknown fields last. At most 100 are listed."
})

/** The text of an error, for a person to read. */
export const text = (preset: string) => Schema.String.pipe(Schema.withConstructorDefault(Effect.succeed(preset)))

/**
 * Makes the class of an error, whose type has its status for the handler, the response and the OpenAPI document. An error
 * without a status is in no endpoint's `responses`.
 */
export const error =
  <Self = never>() =>
  <const Tag extends string, const Status extends number, const Fields extends Schema.Struct.Fields>(
    tag: Tag,
    httpApiStatus: Status,
    fields: Fields
  ) =>
    Schema.TaggedError<Self>()(tag, { ...fields, httpApiStatus: Schema.tag(httpApiStatus) }, { httpApiStatus })

export class OrgMismatch extends error<OrgMismatch>()("OrgMismatch", 400, {
  detail: text("organization does not match the organization of the API key")
}) {}

export class IdRequired extends error<IdRequired>()("IdRequired", 400, {
  detail: text("id is required and cannot be blank")
}) {}

export class TaskIdRequired extends error<TaskIdRequired>()("TaskIdRequired", 400, {
  detail: text("Exactly one of task_id and idempotency_key is required, and it cannot be blank")
}) {}

export class OutOfRange extends error<OutOfRange>()("OutOfRange", 400, { detail: Schema.String }) {}

export class CursorInvalid extends error<CursorInvalid>()("CursorInvalid", 400, {
  detail: text("cursor is not one that this endpoint gave to this organization")
}) {}

export class ClinicRequired extends error<ClinicRequired>()("ClinicRequired", 400, {
  detail: text("clinic cannot be blank")
}) {}

/** 400: the organization has no such clinic, whether or not another one has. */
export class ClinicUnknown extends error<ClinicUnknown>()("ClinicUnknown", 400, {
  detail: text("The organization has no such clinic")
}) {}

export class ClinicNotConnected extends error<ClinicNotConnected>()("ClinicNotConnected", 400, {
  detail: text("The clinic has no connected payment processor account")
}) {}

export class CursorNotFound extends error<CursorNotFound>()("CursorNotFound", 400, {
  detail: text("starting_after is not the id of an object of the clinic's account")
}) {}

/** 401: no API key, or none that is valid; or no valid signature. Reveals nothing about a key. */
export class Unauthorized extends error<Unauthorized>()("Unauthorized", 401, {
  detail: text("The API key is missing or invalid")
}) {}

/** 404: no such record in the key's organization, whether or not another organization has it. */
export class RecordNotFound extends error<RecordNotFound>()("RecordNotFound", 404, {
  detail: text("No such record")
}) {}

/** 404: no such deletion task in the key's organization, whether or not another organization has it. */
export class TaskNotFound extends error<TaskNotFound>()("TaskNotFound", 404, { detail: text("No such task") }) {}

export class CursorExpired extends error<CursorExpired>()("CursorExpired", 410, {
  detail: text(
    "The order of changes restarted, as after a restore of the database, or the cursor is older than 31 days: start again without a cursor, with an empty copy"
  )
}) {}

/** The most bytes of a request body. */
export const maximumBody = 256 * 1024

export class PayloadTooLarge extends error<PayloadTooLarge>()("PayloadTooLarge", 413, {
  detail: text(`The request body is larger than ${maximumBody / 1024} KiB`)
}) {}

export class EncodingUnsupported extends error<EncodingUnsupported>()("EncodingUnsupported", 415, {
  detail: text("Content-Encoding should be identity")
}) {}

export class RequestInvalid extends error<RequestInvalid>()("RequestInvalid", 422, {
  detail: Schema.Array(ValidationError)
}) {}

/** The fields of a 429 or 503. `retryAfter` is in seconds, 1 by default. */
const retried = (preset: string) => ({
  detail: text(preset),
  retryAfter: Schema.optionalKey(Schema.Int)
})

export class TooManyRequests extends error<TooManyRequests>()("TooManyRequests", 429, {
  ...retried("The organization sends too many requests")
}) {}

export class ChangesNotServed extends error<ChangesNotServed>()("ChangesNotServed", 501, {
  detail: text(
    "Changes are not served here: the records are distributed over several servers, whose changes have no common order. Search by updated_at_since or modified_since instead"
  )
}) {}

interface StoreFailure {
  readonly _tag: "Busy" | "Refused" | "Unreachable"
}

const storeTexts = (store: string) => ({
  Unreachable: `The ${store} cannot be reached`,
  Busy: `The ${store} is busy`,
  Refused: `The ${store} refuses the service`
})

const down = (texts: ReturnType<typeof storeTexts>) => retried(texts.Unreachable)

const [credentials, records, tasks] = [
  storeTexts("credential store"),
  storeTexts("record store"),
  storeTexts("task store")
]

/** 503: the store of API keys has no answer. Never reported as 401. */
export class CredentialStoreDown extends error<CredentialStoreDown>()("CredentialStoreDown", 503, down(credentials)) {
  static readonly from = ({ _tag }: StoreFailure) => new CredentialStoreDown({ detail: credentials[_tag] })
}

export class RecordStoreDown extends error<RecordStoreDown>()("RecordStoreDown", 503, down(records)) {
  static readonly from = ({ _tag }: StoreFailure) => new RecordStoreDown({ detail: records[_tag] })
}

export class TaskStoreDown extends error<TaskStoreDown>()("TaskStoreDown", 503, down(tasks)) {
  static readonly from = ({ _tag }: StoreFailure) => new TaskStoreDown({ detail: tasks[_tag] })
}

export class ProcessorDown extends error<ProcessorDown>()("ProcessorDown", 503, {
  ...retried("The payment processor failed or refused the read")
}) {
  /** With a `Retry-After` in whole seconds from 1 to 60. */
  static readonly retryAfter = (duration: Duration.Duration) =>
    new ProcessorDown({ retryAfter: Math.min(Math.max(Math.ceil(Duration.toSeconds(duration)), 1), 60) })
}

export class ProcessorNotConfigured extends error<ProcessorNotConfigured>()("ProcessorNotConfigured", 503, {
  ...retried("The payment processor is not configured")
}) {}

export class ProcessorBusy extends error<ProcessorBusy>()("ProcessorBusy", 503, {
  ...retried("Too many reads of the payment processor are in flight")
}) {}

interface ErrorClass {
  readonly fields: {
    readonly _tag: { readonly schema: { readonly literal: string } }
    readonly httpApiStatus: { readonly schema: { readonly literal: number } }
  }
}

interface Sent {
  readonly _tag: string
  readonly httpApiStatus: number
  readonly retryAfter?: number
}

export interface DetailError extends Sent {
  readonly detail: string
}

interface DetailClass<E extends DetailError = DetailError> extends Schema.ConstraintCodec<E, unknown>, ErrorClass {
  new (error: Pick<DetailError, "detail" | "retryAfter">): E
}

export const statusOf = ({ fields }: ErrorClass) => fields.httpApiStatus.schema.literal

/**
 * The header that names an error. Clients decide on it and on the status, never on the text. The error of a proxy, or of an
 * unknown path, has none that the endpoint declares.
 */
export const errorHeader = "x-error"

/** The name of an error in `x-error`: its class, or the text of its status, in snake case. */
export const errorName = (given: string) => Text.pascalToSnake(given.replaceAll(" ", ""))

const isRetried = (status: number) => status === 429 || status === 503

/** The headers of an endpoint's error. 429 and 503 have `Retry-After` in seconds, 1 by default. */
export const errorHeaders = ({ _tag, httpApiStatus, retryAfter = 1 }: Sent): Readonly<Record<string, string>> => ({
  [errorHeader]: errorName(_tag),
  ...(isRetried(httpApiStatus) && { "retry-after": String(retryAfter) })
})

/** The text of a 500: a bug, whose cause is not revealed. */
export const bugText = "Internal Server Error"

export const bugResponse = HttpServerResponse.jsonUnsafe(
  { detail: bugText },
  { status: 500, headers: { [errorHeader]: errorName(bugText) } }
)

/** The response of an endpoint's error, for where no schema encodes it. Its headers have the same order. */
export const errorResponse = (failure: DetailError, fixed: Readonly<Record<string, string>> = {}) =>
  HttpServerResponse.setHeaders(
    HttpServerResponse.jsonUnsafe({ detail: failure.detail }, { status: failure.httpApiStatus }),
    { ...errorHeaders(failure), ...fixed }
  )

/**
 * The response of errors of one status, with headers that are always the same. Its description is their names, which the
 * OpenAPI document joins to those of other responses of the status.
 */
export const response = <E extends Sent, Body>(
  classes: Array.NonEmptyReadonlyArray<ErrorClass & Schema.ConstraintCodec<E, unknown>>,
  body: Schema.Codec<Body, unknown>,
  encode: (failure: E) => Body,
  decode: (body: Body, retryAfter: number, name: string | undefined) => E,
  fixed: Readonly<Record<string, string>> = {}
): Schema.Codec<E, unknown> => {
  const names = Array.map(classes, ({ fields }) => errorName(fields._tag.schema.literal))
  // A client takes other values of the other headers, which a later release or a proxy may send.
  const headers: Readonly<Record<string, Schema.Codec<string>>> = {
    [errorHeader]: Schema.Literals(names),
    ...Record.map(fixed, () => Schema.String),
    ...(isRetried(statusOf(classes[0])) && { "retry-after": Schema.String })
  }
  return Schema.toType(Schema.Union(classes))
    .pipe(
      HttpApiSchema.encodeToWithHeaders(
        { body, headers },
        {
          decode: (given) =>
            decode(given.body, Math.ceil(Number(given.headers["retry-after"])) || 1, given.headers[errorHeader]),
          encode: (failure) => ({ body: encode(failure), headers: { ...errorHeaders(failure), ...fixed } })
        }
      )
    )
    .annotate({ description: names.join(" | ") })
}

// Responses of a status share a schema, so that the OpenAPI document has it once.
const bodies = new Map<number, typeof ErrorDetail>()

const detailResponse = <E extends DetailError>(
  classes: Array.NonEmptyReadonlyArray<DetailClass<E>>,
  fixed?: Readonly<Record<string, string>>
): Schema.Codec<E, unknown> => {
  const status = statusOf(classes[0])
  const body = bodies.get(status) ?? ErrorDetail.pipe(HttpApiSchema.status(status))
  bodies.set(status, body)
  const decode = ({ detail }: typeof body.Type, retryAfter: number, name: string | undefined) => {
    const Class = classes.find(({ fields }) => errorName(fields._tag.schema.literal) === name) ?? classes[0]
    return new Class({ detail, retryAfter })
  }
  return response(classes, body, ({ detail }) => ({ detail }), decode, fixed)
}

/** The responses of errors, one for each status. 429 and 503 have `Retry-After` in seconds, 1 by default. */
export const responses = <const Classes extends ReadonlyArray<DetailClass>>(
  ...classes: Classes
): ReadonlyArray<Schema.Codec<Classes[number]["Type"], unknown>> =>
  Object.values(Array.groupBy(classes, (one) => String(statusOf(one)))).map((group) => detailResponse(group))

/** The response of an error, with a header that is always the same. */
export const responseWithHeader = <E extends DetailError>(one: DetailClass<E>, name: string, value: string) =>
  detailResponse([one], { [name]: value })

export const responseInvalid = response(
  [RequestInvalid],
  HTTPValidationError.pipe(HttpApiSchema.status(422)),
  ({ detail }) => ({ detail }),
  ({ detail }) => new RequestInvalid({ detail })
)
