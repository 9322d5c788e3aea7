/** The 16 kinds of record, each with its stores: what the suites run over. */
import { Arbitrary, Effect, identity, type Layer } from "effect"
import type { PgClient } from "@effect/sql-pg"
import type { SqlError } from "effect/sql/SqlError"
import { organizations, recordsOf as demoRecordsOf } from "../../src/demo/DemoData.ts"
import { CancellationPaymentIntents } from "../../src/api/records/CancellationPaymentIntents.ts"
import { ChargeAdjustments } from "../../src/api/records/ChargeAdjustments.ts"
import { ChargePayments } from "../../src/api/records/ChargePayments.ts"
import { ChargeRefunds } from "../../src/api/records/ChargeRefunds.ts"
import { Charges } from "../../src/api/records/Charges.ts"
import { Clinics } from "../../src/api/records/Clinics.ts"
import { ConsumptionLogs } from "../../src/api/records/ConsumptionLogs.ts"
import type * as Field from "../../src/api/records/Field.ts"
import { InvoiceLines } from "../../src/api/records/InvoiceLines.ts"
import { Invoices } from "../../src/api/records/Invoices.ts"
import { load } from "../../src/records/Loader.ts"
import { Organizations } from "../../src/api/records/Organizations.ts"
import { PaymentIntents } from "../../src/api/records/PaymentIntents.ts"
import { PaymentPlans } from "../../src/api/records/PaymentPlans.ts"
import { PetBenefits } from "../../src/api/records/PetBenefits.ts"
import { Pets } from "../../src/api/records/Pets.ts"
import * as Postgres from "../../src/records/Postgres.ts"
import { Products } from "../../src/api/records/Products.ts"
import type { Repository } from "../../src/records/Repository.ts"
import { type Filters, type Resource, type Row, rowsOf, type Stored } from "../../src/api/records/Resource.ts"
import type { RecordDatabase } from "../../src/database/Database.ts"
import { Subscriptions } from "../../src/api/records/Subscriptions.ts"
import * as Arbitraries from "../support/arbitraries.ts"
import { TestDatabase } from "../support/TestDatabase.ts"

/** Records of one kind, whatever their type. */
export interface Sample {
  /** The records in the JSON forms of their values, in no order. */
  readonly rows: Effect.Effect<ReadonlyArray<Row>>
  /** The fake over these records. */
  readonly memory: Effect.Effect<Repository>
  /** The repository over the table, whatever it holds. */
  readonly postgres: Effect.Effect<Repository, never, RecordDatabase>
  /** The same, which skips records in the index from the first that is skipped. */
  readonly skipping: Effect.Effect<Repository, never, RecordDatabase>
  /** Makes these records the only ones in their table. */
  readonly load: (sql: PgClient.PgClient) => Effect.Effect<void, SqlError>
}

/** A kind of record. */
export interface Kind {
  readonly resource: Resource
  /** The demo records of both organizations. */
  readonly demo: Sample
  /** Generated records of two organizations. */
  readonly generated: (options: Arbitrary.ArrayOptions) => Arbitrary.Arbitrary<Sample>
}

interface RecordService<
  Self,
  Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
> {
  readonly useSync: <A>(f: (repository: Repository) => A) => Effect.Effect<A, never, Self>
  readonly resource: Resource<Name, Fields, Hidden, F>
  readonly layerFrom: <E, R>(make: (resource: Resource) => Effect.Effect<Repository, E, R>) => Layer.Layer<Self, E, R>
  readonly layerMemory: (records: ReadonlyArray<Stored<Fields, Hidden>>) => Layer.Layer<Self>
}

const over = <Self, E, R>(
  service: { readonly useSync: <A>(f: (repository: Repository) => A) => Effect.Effect<A, never, Self> },
  layer: Layer.Layer<Self, E, R>
) => Effect.provide(service.useSync(identity), layer)

/** The records that a service stores. */
export type RecordOf<S> = S extends { readonly layerMemory: (records?: ReadonlyArray<infer A>) => unknown } ? A : never

/** Records of a service, for tests that write their own. */
export const sampleOf = <
  Self,
  Name extends string,
  Fields extends Field.Fields,
  Hidden extends Field.Fields,
  F extends Filters
>(
  service: RecordService<Self, Name, Fields, Hidden, F>,
  records: Effect.Effect<ReadonlyArray<Stored<Fields, Hidden>>>
): Sample => ({
  rows: Effect.flatMap(records, (all) => rowsOf(service.resource, all)),
  memory: Effect.flatMap(records, (all) => over(service, service.layerMemory(all))),
  postgres: over(service, service.layerFrom(Postgres.make)),
  skipping: over(
    service,
    service.layerFrom((resource) => Postgres.make(resource, 1))
  ),
  load: (sql) =>
    Effect.andThen(
      sql.unsafe(`truncate ${service.resource.table}`),
      Effect.flatMap(records, (all) => load(sql, service.resource, all))
    )
})

const demoData = organizations.map(demoRecordsOf)

const kindOf = <Self, Name extends string, Fields extends Field.Fields, Hidden extends Field.Fields, F extends Filters>(
  service: RecordService<Self, Name, Fields, Hidden, F>,
  demo: (data: ReturnType<typeof demoRecordsOf>) => ReadonlyArray<Stored<Fields, Hidden>>
): Kind => ({
  resource: service.resource,
  demo: sampleOf(service, Effect.succeed(demoData.flatMap(demo))),
  generated: (options) =>
    Arbitrary.map(Arbitraries.recordsOf(service.resource, options), (records) =>
      sampleOf(service, Arbitraries.decode(service.resource, records))
    )
})

export const kinds: ReadonlyArray<Kind> = [
  kindOf(Organizations, (data) => data.organizations),
  kindOf(Clinics, (data) => data.clinics),
  kindOf(Pets, (data) => data.pets),
  kindOf(Subscriptions, (data) => data.subscriptions),
  kindOf(PaymentPlans, (data) => data.paymentPlans),
  kindOf(PaymentIntents, (data) => data.paymentIntents),
  kindOf(CancellationPaymentIntents, (data) => data.cancellationPaymentIntents),
  kindOf(PetBenefits, (data) => data.petBenefits),
  kindOf(Products, (data) => data.products),
  kindOf(ConsumptionLogs, (data) => data.consumptionLogs),
  kindOf(Invoices, (data) => data.invoices),
  kindOf(InvoiceLines, (data) => data.invoiceLines),
  kindOf(Charges, (data) => data.charges),
  kindOf(ChargePayments, (data) => data.chargePayments),
  kindOf(ChargeAdjustments, (data) => data.chargeAdjustments),
  kindOf(ChargeRefunds, (data) => data.chargeRefunds)
]

/** Loads a sample; gives its rows and both stores over them. */
export const storesOf = Effect.fnUntraced(function* (sample: Sample) {
  const { sql } = yield* TestDatabase
  yield* sample.load(sql)
  return {
    rows: yield* sample.rows,
    memory: yield* sample.memory,
    postgres: yield* sample.postgres,
    skipping: yield* sample.skipping
  }
})
