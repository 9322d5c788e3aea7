/**
 * The data API by promises, over the typed client of its contract. Requests and records are the JSON of the API: a time is
 * a text. A failed request rejects with an error of the contract, which has `_tag`, `detail` and `httpApiStatus`; with an
 * `HttpClientError` or a `SchemaError` where no such service responds; after a minute with a `TimeoutError`.
 */
import { Effect, Option, Predicate, Schema, Stream } from "effect"
import { DeletionTask } from "../api/DeletionTasks.ts"
import type { PspObject, PspPage } from "../api/Psp.ts"
import { chargeAdjustments, chargePayments, chargeRefunds, charges } from "../api/records/Charges.ts"
import { Changes, names } from "../api/records/index.ts"
import { consumptionLogs, invoiceLines, invoices } from "../api/records/Invoices.ts"
import { clinics, organization, products } from "../api/records/Organizations.ts"
import { cancellationPaymentIntents, paymentIntents, paymentPlans } from "../api/records/Payments.ts"
import { petBenefits, pets, subscriptions } from "../api/records/Pets.ts"
import type { Filters } from "../api/records/Resource.ts"
import { connect, type Options } from "./Connection.ts"

const limited = Effect.timeout("1 minute")

/** The JSON of what an effect returns. */
const json = <A, I>(schema: Schema.Codec<A, I>) => {
  const encode = Schema.encodeEffect(schema)
  return <E>(work: Effect.Effect<A, E>) => limited(Effect.flatMap(work, encode))
}

interface Described<A, I> {
  readonly record: Schema.Codec<A, I>
  readonly filters: Filters
  readonly orderedBy: string
}

/** The searches of a group. */
const searches = <Given extends object, A, I extends object, E>(
  { filters, orderedBy, record }: Described<A, I>,
  group: { readonly search: (_: { readonly payload: Given }) => Effect.Effect<{ readonly body: ReadonlyArray<A> }, E> }
) => {
  const encode = json(Schema.Array(record))
  const read = (payload: Given) => encode(Effect.map(group.search({ payload }), ({ body }) => body))
  const instant = (row: I | undefined) => (Predicate.hasProperty(row, orderedBy) ? String(row[orderedBy]) : undefined)
  const since = Object.entries(filters).find(([, { fields, kind }]) => kind === "since" && fields.includes(orderedBy))
  return {
    /** A page of the records that match every filter, by default the first 100. */
    search: (given: Given, options?: Effect.RunOptions) => Effect.runPromise(read(given), options),
    /**
     * All records that match every filter, oldest change first. A record that changes meanwhile may come again. If it shares
     * the millisecond of its last change with others, one of these may be skipped: to keep a copy, read `changes`.
     */
    all: (given: Given): AsyncIterable<I> =>
      Stream.toAsyncIterable(
        // A page begins at the time of the last record that was read, after the records of that time.
        Stream.paginate({ offset: 0, time: "" }, ({ offset, time }) =>
          Effect.map(read({ ...given, ...(since && time && { [since[0]]: time }), limit: 1000, offset }), (page) => {
            const last = (since && instant(page.at(-1))) ?? ""
            const past = last === time ? offset + page.length : page.filter((row) => instant(row) === last).length
            return [page, page.length < 1000 ? Option.none() : Option.some({ offset: past, time: last })] as const
          })
        )
      )
  }
}

/** The reads of a resource. */
const resource = <Given extends object, A, I extends object, E1, E2>(
  described: Described<A, I>,
  group: Parameters<typeof searches<Given, A, I, E1>>[1] & {
    readonly get: (_: { readonly payload: { readonly id: string } }) => Effect.Effect<A, E2>
  }
) => {
  const get = (id: string, options?: Effect.RunOptions) =>
    Effect.runPromise(json(described.record)(group.get({ payload: { id } })), options)
  return { ...searches(described, group), get }
}

/** The reads of a clinic's account at the payment processor, newest first. */
const live = <Given extends object, E>(group: {
  readonly search: (_: { readonly payload: Given }) => Effect.Effect<typeof PspPage.Type, E>
}) => {
  const read = (payload: Given) => limited(group.search({ payload }))
  return {
    /** A page. Set `starting_after` to the id of the last object for the next one. */
    search: (given: Given, options?: Effect.RunOptions) => Effect.runPromise(read(given), options),
    all: (given: Given): AsyncIterable<PspObject> =>
      Stream.toAsyncIterable(
        Stream.paginate({}, (after) =>
          Effect.map(read({ ...given, ...after }), ({ data, has_more }) => {
            const last = has_more ? data.at(-1) : undefined
            return [data, last ? Option.some({ starting_after: last.id }) : Option.none()] as const
          })
        )
      )
  }
}

/**
 * Reads the data of the organization that an API key belongs to. Throws if an option is invalid.
 *
 * @example
 * const client = PracticeData.make({ baseUrl: "http://127.0.0.1:3000", apiKey: "pda_demo_oakridge" })
 * for await (const charge of client.charges.all({ status: "open" })) console.log(charge.id)
 */
export const make = (options: Options) => {
  const { client } = Effect.runSync(connect(options))
  type Requested = Parameters<typeof client.changes.changes>[0]["payload"]
  type TaskKey = Parameters<(typeof client)["deletion-tasks"]["get"]>[0]["payload"]
  const tasks = { record: DeletionTask, orderedBy: "scheduled_for", filters: {} }
  return {
    organization: {
      get: (call?: Effect.RunOptions) =>
        Effect.runPromise(json(organization.record)(client.organization.get({ payload: {} })), call)
    },
    clinics: resource(clinics, client.clinics),
    products: resource(products, client.products),
    invoices: resource(invoices, client.invoices),
    invoiceLines: resource(invoiceLines, client["invoice-lines"]),
    consumptionLogs: resource(consumptionLogs, client["consumption-logs"]),
    petBenefits: resource(petBenefits, client["pet-benefits"]),
    charges: resource(charges, client.charges),
    chargePayments: resource(chargePayments, client["charge-payments"]),
    chargeAdjustments: resource(chargeAdjustments, client["charge-adjustments"]),
    chargeRefunds: resource(chargeRefunds, client["charge-refunds"]),
    paymentPlans: resource(paymentPlans, client["payment-plans"]),
    paymentIntents: resource(paymentIntents, client["payment-intents"]),
    cancellationPaymentIntents: resource(cancellationPaymentIntents, client["cancellation-payment-intents"]),
    pets: resource(pets, client.pets),
    subscriptions: resource(subscriptions, client.subscriptions),
    pspPayments: live(client["psp-payments"]),
    pspCharges: live(client["psp-charges"]),
    pspRefunds: live(client["psp-refunds"]),
    pspDisputes: live(client["psp-disputes"]),
    pspPayouts: live(client["psp-payouts"]),
    pspBalanceTransactions: live(client["psp-balance-transactions"]),
    /** The outcomes of deliveries to the intake of invoice deletions. */
    invoiceDeletions: {
      ...searches(tasks, client["deletion-tasks"]),
      get: (key: TaskKey, call?: Effect.RunOptions) =>
        Effect.runPromise(json(DeletionTask)(client["deletion-tasks"].get({ payload: key })), call)
    },
    /**
     * The pages of changes after a cursor, to the last one; without a cursor, all records first. Apply the items of a page in
     * their order, and save its cursor with them. Where `is_consistent` is true, the copy equals a state of the database.
     */
    changes: (request: Requested): AsyncIterable<typeof Changes.Encoded> =>
      Stream.toAsyncIterable(
        Stream.paginate({ resources: names, ...request }, (payload) =>
          Effect.map(json(Changes)(client.changes.changes({ payload })), (page) => [
            [page],
            page.has_more ? Option.some({ ...payload, cursor: page.cursor }) : Option.none()
          ])
        )
      )
  }
}
