/** Errors are equal if their fields are: chai compares their names and messages alone. */
import { chai } from "vitest"

const fieldsOf = (error: Error) => [Object.entries(error), error.name, error.message]

const equal = (one: unknown, other: unknown): boolean =>
  chai.util.eql(one, other, {
    comparator: (left: unknown, right: unknown) =>
      left instanceof Error && right instanceof Error ? equal(fieldsOf(left), fieldsOf(right)) : null
  })

chai.config.deepEqual = equal
