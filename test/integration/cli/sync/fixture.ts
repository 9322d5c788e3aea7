/** Pages, records and openings for tests of targets. */
import { assert, type Vitest } from "@effect/vitest"
import { Effect, Schema, type Scope } from "effect"
import { paymentIntents } from "../../../../src/api/records/PaymentIntents.ts"
import { pets } from "../../../../src/api/records/Pets.ts"
import { type Table, tables } from "../../../../src/cli/sync/Table.ts"
import type { OpenOptions, Page, State, Target } from "../../../../src/cli/sync/Target.ts"
import type { AnyRecord } from "../../../../src/client/index.ts"
import { rowsOf } from "../../../../src/records/Rows.ts"
import { resources } from "../../records/stores.ts"
import * as Arbitraries from "../../../support/arbitraries.ts"
import { tries } from "../../../support/tries.ts"
import type { Rows } from "./readers.ts"

export const tableOf = (name: string): Table => tables.find(({ resource }) => resource === name) ?? assert.fail(name)

export const charges = tableOf("charges")

export const origin = { organization: "org_a", url: "http://127.0.0.1:3000" }

/** Options to open a target: for charges alone by default. */
export const opening = (over: Partial<OpenOptions> = {}): OpenOptions => ({
  origin,
  allowNewUrl: false,
  tables: [charges],
  ...over
})

let cursors = 0

/** The last page, by default. Each has a cursor of its own. */
export const page = (records: ReadonlyArray<AnyRecord>, over: Partial<Page> = {}): Page => ({
  body: [...records],
  removed: [],
  cursor: `cursor ${++cursors}`,
  has_more: false,
  complete: true,
  lag: 0,
  ...over
})

/** A charge of an id, with a status by which its states differ. */
export const charge = (id: string, status: string): AnyRecord => {
  const values = charges.columns.map(({ name, type }) => [name, type === "numeric" ? 1.5 : null] as const)
  const time = "2026-01-31T09:30:00.000Z"
  return { ...Object.fromEntries(values), id, status, created_at: time, updated_at: time }
}

export const beginning: State = { cursor: undefined, load: "first" }

const decode = Schema.decodeEffect(Schema.Array(Schema.fromJsonString(Schema.Record(Schema.String, Schema.Unknown))))

interface Copied {
  readonly target: Target
  readonly rowsOf: (resource: string) => Effect.Effect<Rows>
}

/** The rule that a copy in a kind of target has records exactly as they came. */
export const exactly = <R>(
  kind: string,
  it: Pick<Vitest.MethodsNonLive<R>, "effect">,
  make: Effect.Effect<Copied, never, R | Scope.Scope>
) => {
  for (const { often, options } of tries({ few: 1, many: 5, size: 24, maxShrinks: 100 }))
    // They have a field of every type.
    for (const resource of options.tags.length > 0 ? resources : [paymentIntents, pets])
      it.effect.prop(
        `${kind} has ${resource.name} exactly as they came${often}`,
        { records: Arbitraries.recordsOf(resource, { minLength: 4, maxLength: 24 }) },
        ({ records }) =>
          Effect.gen(function* () {
            const table = tableOf(resource.name)
            const { rowsOf: copied, target } = yield* make
            const copy = yield* target.open(opening({ tables: [table] }))
            const came = yield* decode((yield* rowsOf(resource, records)).map(({ json }) => json))
            // Each record replaces one of its id with the values of the next.
            const before = came.map(({ id }, index) => ({ ...came[(index + 1) % came.length], id }))
            const state = yield* copy.apply(table, beginning, page(before, { has_more: true }))
            yield* copy.apply(table, state, page(came))
            yield* copy.finish
            assert.deepStrictEqual(
              Object.fromEntries(yield* copied(resource.name)),
              Object.fromEntries(came.map((record) => [record["id"], JSON.stringify(record)]))
            )
          }).pipe(Effect.scoped),
        options
      )
}
