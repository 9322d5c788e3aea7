/** Scripts of a service's feed, and records for tests of a copy. */
import { assert } from "@effect/vitest"
import { DateTime, Effect, Option, Stream } from "effect"
import type { CursorExpired } from "../../../../src/api/Errors.ts"
import type { Source } from "../../../../src/cli/sync/Source.ts"
import type { Target } from "../../../../src/cli/sync/SqlCopy.ts"
import * as Sync from "../../../../src/cli/sync/Sync.ts"
import { type Change, type ChangePage, type Table, tables } from "../../../../src/cli/sync/Tables.ts"
import type { Failed } from "../../../../src/cli/Usage.ts"

type AnyRecord = Readonly<Record<string, unknown>>

const tableOf = (name: string): Table => tables.find(({ resource }) => resource === name) ?? assert.fail(name)

const recordOf = (resource: string, id: string, values: AnyRecord): AnyRecord => {
  const empty = tableOf(resource).columns.map(({ name, type }) => [name, type === "numeric" ? 1.5 : null] as const)
  const time = "2026-01-31T09:30:00.000Z"
  return { ...Object.fromEntries(empty), id, ...values, created_at: time, updated_at: time }
}

/** A charge of an id, with a status by which its states differ. */
export const charge = (id: string, status: string, more: AnyRecord = {}): Change => ({
  resource: "charges",
  record: recordOf("charges", id, { status, ...more })
})
export const refund = (id: string): Change => {
  const resource = "charge-refunds"
  return { resource, record: recordOf(resource, id, {}) }
}
export const gone = (id: string, resource = "charges"): Change => ({ resource, removed: id })
export const reset = (resource = "charges"): Change => ({ resource, reset: true })

type Response = Omit<ChangePage, "requestedAt">

/** The page before a cursor; the last one of its round by default. */
export const page = (next: number, body: ReadonlyArray<Change> = [], over: Partial<Response> = {}): Response => ({
  body,
  cursor: `${next}`,
  has_more: false,
  is_consistent: over.has_more !== true,
  ...over
})

export const more = { has_more: true }

/** The response of the service to a cursor, which is a number: 0 at the beginning. */
export type Script = (at: number) => Response | Effect.Effect<Response, CursorExpired | Failed>

const organization = "org_a"

/** The opening of a copy of charges. */
export const opening = { organization, tables: [tableOf("charges")] }

export interface Given extends Partial<Pick<Sync.SyncOptions, "report" | "watch">> {
  readonly resources?: ReadonlyArray<string>
  /** A field that this package does not know. */
  readonly without?: string
  readonly source?: Partial<Source>
}

/** Runs the sync of a target over a script: of charges and their refunds by default. */
export const syncWith = (target: Target, script: Script, given: Given = {}) =>
  Sync.run({
    source: {
      url: "http://service",
      organization: Effect.succeed(organization),
      changes: (from) =>
        Stream.paginate(Number(from ?? 0), (at) =>
          Effect.gen(function* () {
            const requestedAt = yield* DateTime.now
            const response = script(at)
            const found = Effect.isEffect(response) ? yield* response : response
            const next = found.has_more ? Option.some(Number(found.cursor)) : Option.none()
            return [[{ ...found, requestedAt }], next]
          })
        ),
      ...given.source
    },
    target,
    report: given.report ?? (() => Effect.void),
    tables: (given.resources ?? ["charges", "charge-refunds"]).map((name) => {
      const table = tableOf(name)
      return { ...table, columns: table.columns.filter((column) => column.name !== given.without) }
    }),
    watch: given.watch
  })
