/** The texts of statements that read records. Making one costs as much as sending it, so each is made once. */
import type { Query } from "../database/Store.ts"

/** A statement with its values, as it is sent. */
export interface Made {
  readonly query: Query
  /** True if the plan does not depend on the values, so that it is made once. */
  readonly isPlannedOnce: boolean
}

/** Makes a statement from its values, which it leaves as they are. */
export type Make = (values: ReadonlyArray<string>) => Made

type Template = (values: ReadonlyArray<unknown>) => Made

/** Limits and offsets are in the texts, so there can be any number of them. */
const maximumTexts = 500

const templateOf = (count: number, make: Make): Template => {
  const placeholders = Array.from({ length: count }, (_, index) => `\0${index}`)
  const { isPlannedOnce, query } = make(placeholders)
  const [text, made] = query
  const places = made.map((value) => placeholders.findIndex((placeholder) => placeholder === value))
  return (values) => ({
    isPlannedOnce,
    // A value that has no place is the statement's own.
    query: [text, made.map((own, index) => values[places[index] ?? -1] ?? own)]
  })
}

/** Keeps the texts of statements that have a shape: those of one shape differ in their values alone. */
export const make = () => {
  const templates = new Map<string, Template>()
  return (shape: string | undefined, values: ReadonlyArray<unknown>, anew: Make): Made => {
    if (shape === undefined) return templateOf(values.length, anew)(values)
    const known = templates.get(shape)
    if (known !== undefined) return known(values)
    if (templates.size >= maximumTexts) templates.clear()
    const template = templateOf(values.length, anew)
    templates.set(shape, template)
    return template(values)
  }
}
