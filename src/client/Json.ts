/** Reads and writes JSON, and looks at what was read. */

export const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/** The value of a text; undefined where it is no JSON. */
export const parse = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

const isInvalid = (value: unknown) =>
  (typeof value === "number" && !Number.isFinite(value)) || (value instanceof Date && Number.isNaN(value.getTime()))

/** The text of a request body. JSON would make an invalid date null, which counts as absent and widens the result. */
export const stringify = (body: object): string => {
  for (const [name, value] of Object.entries(body)) {
    if (isInvalid(value))
      throw new RangeError(`${name} is ${value instanceof Date ? "an invalid date" : String(value)}`)
  }
  return JSON.stringify(body)
}
