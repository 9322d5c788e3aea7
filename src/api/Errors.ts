/**
 * The public errors of the service: a class for each reason. The class has the HTTP status, and its texts are the type
 * of its `detail`. `responses` gives the form in which a client gets them: a body of the documented shape, with the
 * headers that the client needs.
 *
 * Contract: sections 2.11 and 7.
 */
import { Array, Duration, Effect, Schema, SchemaAST, SchemaTransformation } from "effect"
import { HttpApiSchema } from "effect/http-api"

/** The body of every error but 422. */
export const ErrorDetail = Schema.Struct({
  detail: Schema.String.annotate({ description: "What went wrong, for a person to read." })
}).annotate({ identifier: "ErrorDetail" })

/** One fault of a request: where it is, what is wrong, and the kind of the fault for a program to act on. */
export const ValidationError = Schema.Struct({
  loc: Schema.Array(Schema.Union([Schema.String, Schema.Int])).annotate({
    description:
      "Where the fault is: `body`, `header` or `query`, then names and array positions. Of a name of more than 64 characters, the first 64 and an ellipsis."
  }),
  msg: Schema.String.annotate({ description: "What is wrong, for a person to read." }),
  type: Schema.String.annotate({ description: "The kind of the fault, such as `string_type`." })
}).annotate({ identifier: "ValidationError" })
export type ValidationError = typeof ValidationError.Type

/** The body of a 422: the faults of the request, all at once, up to a hundred. */
export const HTTPValidationError = Schema.Struct({ detail: Schema.Array(ValidationError) }).annotate({
  identifier: "HTTPValidationError",
  description:
    "The faults of the request, in the order of the endpoint's fields, unknown fields last. The list ends after 100 faults, whether or not there are more."
})

/** The text of an error, by default the first of those that it has. A client knows the error by them. */
export const text = (...texts: Array.NonEmptyReadonlyArray<string>) =>
  Schema.String.annotate({ examples: texts }).pipe(Schema.withConstructorDefault(Effect.succeed(texts[0])))

/** 400: the body names an organization other than the key's. */
export class OrgMismatch extends Schema.TaggedError<OrgMismatch>()(
  "OrgMismatch",
  { detail: text("organization does not match the organization of the API key") },
  { httpApiStatus: 400 }
) {}

/** 400: the id of a single-record read is missing or blank. */
export class IdRequired extends Schema.TaggedError<IdRequired>()(
  "IdRequired",
  { detail: text("id is required and cannot be blank") },
  { httpApiStatus: 400 }
) {}

/** 400: a task is asked for by neither its id nor its key, by both, or by a blank one. */
export class TaskIdRequired extends Schema.TaggedError<TaskIdRequired>()(
  "TaskIdRequired",
  { detail: text("Exactly one of task_id and idempotency_key is required, and it cannot be blank") },
  { httpApiStatus: 400 }
) {}

/** 400: a number of the request is out of range. */
export class OutOfRange extends Schema.TaggedError<OutOfRange>()(
  "OutOfRange",
  { detail: Schema.String },
  { httpApiStatus: 400 }
) {}

/** 400: the cursor is damaged, or of another resource or organization. */
export class CursorInvalid extends Schema.TaggedError<CursorInvalid>()(
  "CursorInvalid",
  { detail: text("cursor is not one that this endpoint gave to this organization") },
  { httpApiStatus: 400 }
) {}

/** 400: the clinic of a processor read is blank. */
export class ClinicRequired extends Schema.TaggedError<ClinicRequired>()(
  "ClinicRequired",
  { detail: text("clinic cannot be blank") },
  { httpApiStatus: 400 }
) {}

/** 400: the organization has no such clinic, whether or not another one has. */
export class ClinicUnknown extends Schema.TaggedError<ClinicUnknown>()(
  "ClinicUnknown",
  { detail: text("The organization has no such clinic") },
  { httpApiStatus: 400 }
) {}

/** 400: the clinic has no processor account, or none any more. */
export class ClinicNotConnected extends Schema.TaggedError<ClinicNotConnected>()(
  "ClinicNotConnected",
  { detail: text("The clinic has no connected payment processor account") },
  { httpApiStatus: 400 }
) {}

/** 400: the account has no object with the id of starting_after. */
export class CursorNotFound extends Schema.TaggedError<CursorNotFound>()(
  "CursorNotFound",
  { detail: text("starting_after is not the id of an object of the clinic's account") },
  { httpApiStatus: 400 }
) {}

/** 401: no API key, or none that is valid; or no valid signature. Says the same whatever is wrong with a key. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()(
  "Unauthorized",
  {
    detail: Schema.String.pipe(Schema.withConstructorDefault(Effect.succeed("The API key is missing or invalid")))
  },
  { httpApiStatus: 401 }
) {}

/** 404: no such record in the key's organization, whether or not another organization has it. */
export class RecordNotFound extends Schema.TaggedError<RecordNotFound>()(
  "RecordNotFound",
  { detail: text("No such record") },
  { httpApiStatus: 404 }
) {}

/** 404: no such deletion task in the key's organization, whether or not another organization has it. */
export class TaskNotFound extends Schema.TaggedError<TaskNotFound>()(
  "TaskNotFound",
  { detail: text("No such task") },
  { httpApiStatus: 404 }
) {}

/** 410: the order of changes that the cursor belongs to has ended. */
export class CursorExpired extends Schema.TaggedError<CursorExpired>()(
  "CursorExpired",
  {
    detail: text(
      "The order of changes began anew, as after a restore of the database: start again without a cursor, with an empty copy"
    )
  },
  { httpApiStatus: 410 }
) {}

/** 413: the body is larger than the endpoint reads. */
export class PayloadTooLarge extends Schema.TaggedError<PayloadTooLarge>()(
  "PayloadTooLarge",
  { detail: Schema.String },
  { httpApiStatus: 413 }
) {}

/** 415: the body is compressed, or encoded in some other way. */
export class EncodingUnsupported extends Schema.TaggedError<EncodingUnsupported>()(
  "EncodingUnsupported",
  { detail: text("Content-Encoding should be identity") },
  { httpApiStatus: 415 }
) {}

/** 422: the request does not have the shape that the endpoint takes. */
export class RequestInvalid extends Schema.TaggedError<RequestInvalid>()(
  "RequestInvalid",
  { detail: Schema.Array(ValidationError) },
  { httpApiStatus: 422 }
) {}

const seconds = Schema.optionalKey(Schema.Int)

/** 429: more requests of one organization than it may send. */
export class TooManyRequests extends Schema.TaggedError<TooManyRequests>()(
  "TooManyRequests",
  { detail: text("The organization sends too many requests"), retryAfter: seconds },
  { httpApiStatus: 429 }
) {}

/** 501: the database is distributed over several servers, whose changes have no common order. */
export class ChangesNotServed extends Schema.TaggedError<ChangesNotServed>()(
  "ChangesNotServed",
  {
    detail: text(
      "Changes are not served here: the records are distributed over several servers, whose changes have no common order. Search by updated_at_since or modified_since instead"
    )
  },
  { httpApiStatus: 501 }
) {}

/** Why a store has no answer. */
interface StoreFailure {
  readonly _tag: "Busy" | "Unreachable"
}

/** 503: the store of API keys cannot be reached, or has no time. Never reported as 401. */
export class CredentialStoreDown extends Schema.TaggedError<CredentialStoreDown>()(
  "CredentialStoreDown",
  { detail: text("The credential store cannot be reached", "The credential store is busy"), retryAfter: seconds },
  { httpApiStatus: 503 }
) {
  /** What to tell of a failure of the store. */
  static readonly from = ({ _tag }: StoreFailure) =>
    new CredentialStoreDown(_tag === "Busy" ? { detail: "The credential store is busy" } : {})
}

/** 503: the store of records cannot be reached, or has no time. */
export class RecordStoreDown extends Schema.TaggedError<RecordStoreDown>()(
  "RecordStoreDown",
  { detail: text("The record store cannot be reached", "The record store is busy"), retryAfter: seconds },
  { httpApiStatus: 503 }
) {
  /** What to tell of a failure of the store. */
  static readonly from = ({ _tag }: StoreFailure) =>
    new RecordStoreDown(_tag === "Busy" ? { detail: "The record store is busy" } : {})
}

/** 503: the store of deletion tasks cannot be reached, or has no time. */
export class TaskStoreDown extends Schema.TaggedError<TaskStoreDown>()(
  "TaskStoreDown",
  { detail: text("The task store cannot be reached", "The task store is busy"), retryAfter: seconds },
  { httpApiStatus: 503 }
) {
  /** What to tell of a failure of the store. */
  static readonly from = ({ _tag }: StoreFailure) =>
    new TaskStoreDown(_tag === "Busy" ? { detail: "The task store is busy" } : {})
}

/** 503: the service already reads as many large bodies as it can hold. */
export class ServiceBusy extends Schema.TaggedError<ServiceBusy>()(
  "ServiceBusy",
  { detail: text("The service is reading too many large requests"), retryAfter: seconds },
  { httpApiStatus: 503 }
) {}

/** 503: the payment processor does not answer. `retryAfter` is in seconds. */
export class ProcessorDown extends Schema.TaggedError<ProcessorDown>()(
  "ProcessorDown",
  { detail: text("The payment processor cannot be reached"), retryAfter: seconds },
  { httpApiStatus: 503 }
) {
  /** To be tried again after a while, which is told in whole seconds from 1 to 60. */
  static readonly retryAfter = (duration: Duration.Duration) =>
    new ProcessorDown({ retryAfter: Math.min(Math.max(Math.ceil(Duration.toSeconds(duration)), 1), 60) })
}

/** 503: the service has no key for the payment processor. */
export class ProcessorNotConfigured extends Schema.TaggedError<ProcessorNotConfigured>()(
  "ProcessorNotConfigured",
  { detail: text("The payment processor is not configured"), retryAfter: seconds },
  { httpApiStatus: 503 }
) {}

/** 503: the organization already has as many processor reads in flight as it may have. */
export class ProcessorBusy extends Schema.TaggedError<ProcessorBusy>()(
  "ProcessorBusy",
  { detail: text("Too many reads of the payment processor are in flight"), retryAfter: seconds },
  { httpApiStatus: 503 }
) {}

interface DetailError {
  readonly detail: string
  readonly retryAfter?: number
}

/** The class of an error whose body is `{ detail }`. */
export interface DetailClass<E extends DetailError = DetailError> extends Schema.ConstraintCodec<E, unknown> {
  new (error: DetailError): E
  readonly fields: { readonly detail: Schema.Constraint }
}

const statusOf = SchemaAST.resolveAt<number>("httpApiStatus")
const textsOf = SchemaAST.resolveAt<ReadonlyArray<string>>("examples")

const bodyOf = (status: number) => ErrorDetail.pipe(HttpApiSchema.status(status))

const tellsWhen = (status: number) => status === 429 || status === 503

const retryAfterHeader = Schema.Int.annotate({ description: "After how many seconds to try again." })

/**
 * The response of errors of one status. A client knows which one it is by its text; a text that none of them has is an
 * error that may have any, or the first one.
 */
const response = <E extends DetailError>(
  status: number,
  classes: Array.NonEmptyReadonlyArray<DetailClass<E>>
): Schema.Codec<E, unknown> => {
  const error = Schema.toType(Schema.Union(classes))
  const has = (detail: string) => (one: DetailClass) => textsOf(one.fields.detail.ast)?.includes(detail)
  const decode = (given: DetailError) => {
    const found =
      classes.find(has(given.detail)) ??
      classes.find(({ fields }) => textsOf(fields.detail.ast) === undefined) ??
      classes[0]
    return new found(given)
  }
  return tellsWhen(status)
    ? error.pipe(
        HttpApiSchema.encodeToWithHeaders(
          { body: bodyOf(status), headers: { "retry-after": retryAfterHeader } },
          {
            decode: ({ body: { detail }, headers }) => decode({ detail, retryAfter: headers["retry-after"] }),
            encode: ({ detail, retryAfter = 1 }) => ({ body: { detail }, headers: { "retry-after": retryAfter } })
          }
        )
      )
    : ErrorDetail.pipe(
        Schema.decodeTo(error, SchemaTransformation.transform({ decode, encode: ({ detail }) => ({ detail }) })),
        HttpApiSchema.status(status)
      )
}

/**
 * The responses of errors, one for each status: `{ detail }`, and nothing of the error's inner structure. 429 and 503
 * tell in `Retry-After` when to try again, in seconds; 1 where nothing else is known.
 */
export const responses = <const Classes extends ReadonlyArray<DetailClass>>(
  ...classes: Classes
): ReadonlyArray<Schema.Codec<Classes[number]["Type"], unknown>> =>
  Object.values(Array.groupBy(classes, ({ ast }) => String(statusOf(ast)))).map((group) =>
    response(statusOf(group[0].ast) ?? 500, group)
  )

/** The response of an error, with a header that is always the same. */
export const responseWithHeader = <E extends DetailError, const Name extends string>(
  error: DetailClass<E>,
  name: Name,
  value: string
) =>
  Schema.toType(error).pipe(
    HttpApiSchema.encodeToWithHeaders(
      { body: bodyOf(statusOf(error.ast) ?? 500), headers: { [name]: Schema.String } },
      {
        decode: ({ body: { detail } }) => new error({ detail }),
        encode: ({ detail }) => ({ body: { detail }, headers: { [name]: value } })
      }
    )
  )

/** The response of a 422. */
export const responseInvalid = HTTPValidationError.pipe(
  Schema.decodeTo(
    Schema.toType(RequestInvalid),
    SchemaTransformation.transform({
      decode: ({ detail }) => new RequestInvalid({ detail }),
      encode: ({ detail }) => ({ detail })
    })
  )
)
