/** The texts of statements that read records. Making one costs as much as sending it, so each is made once. */
import type { Query } from "../database/Store.ts"

/** Whose records a statement reads: the id of an organization, or the hash of a key. */
export type Owner = string | Uint8Array

/** A statement with its values, as it is sent. */
export interface Made {
  readonly query: Query
  /** Whether its plan does not depend on the values, so that it is made once. */
  readonly isPlannedOnce: boolean
}

/** Statements of which only the values differ. */
export interface Shaped {
  /** The same for all of them. */
  readonly shape: string
  /** The values of this one, without the owner. */
  readonly values: ReadonlyArray<string>
}

type Template = (owner: Owner, values: ReadonlyArray<string>) => Made

/** How many texts are kept. Limits and offsets are in them, so there can be any number. */
const most = 500

const templateOf = (
  owner: Owner,
  count: number,
  anew: (owner: Owner, values: ReadonlyArray<string>) => Made
): Template => {
  const placeholders = Array.from({ length: count }, (_, index) => `\0${index}`)
  const anyOwner = typeof owner === "string" ? "\0" : new Uint8Array()
  const { isPlannedOnce, query } = anew(anyOwner, placeholders)
  const [text, made] = query
  const places = made.map((value) => placeholders.findIndex((placeholder) => placeholder === value))
  return (of, values) => ({
    isPlannedOnce,
    query: [
      text,
      // A value that is neither is the statement's own.
      made.map((own, index) => (own === anyOwner ? of : (values[places[index] ?? -1] ?? own)))
    ]
  })
}

/** Keeps the texts of statements. */
export const make = () => {
  const templates = new Map<string, Template>()

  /**
   * A statement.
   *
   * @param anew makes it for any owner and any values, which it leaves as they are
   */
  return (
    owner: Owner,
    { shape, values }: Shaped,
    anew: (owner: Owner, values: ReadonlyArray<string>) => Made
  ): Made => {
    const key = typeof owner === "string" ? `known ${shape}` : shape
    const known = templates.get(key)
    if (known !== undefined) return known(owner, values)
    if (templates.size >= most) templates.clear()
    const template = templateOf(owner, values.length, anew)
    templates.set(key, template)
    return template(owner, values)
  }
}
