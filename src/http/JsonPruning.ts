/**
 * Prunes JSON to what a schema looks at: the rest is checked for its syntax and left out. A malicious text then takes no
 * longer to parse and decode than a well-meant one.
 */
import { Data, type Schema, SchemaAST } from "effect"
import { maximumFaults } from "../api/Faults.ts"
import { scan, type Visitor } from "./JsonScan.ts"

/** What a schema looks at. */
export type Shape = Data.TaggedEnum<{
  /** The members of an object, by their names. */
  Fields: { readonly fields: ReadonlyMap<string, Shape> }
  List: { readonly item: Shape }
  /** A value that the schema does not look into. */
  Leaf: {}
}>
const Shape = Data.taggedEnum<Shape>()

/** What a schema of a request body looks at, and how many items its lists may have together. */
export interface Wanted {
  readonly shape: Shape
  readonly maximumItems: number
}

const shapeOf = (ast: SchemaAST.AST): Shape => {
  if (SchemaAST.isObjects(ast)) {
    return Shape.Fields({
      fields: new Map(ast.propertySignatures.map(({ name, type }) => [String(name), shapeOf(type)]))
    })
  }
  if (SchemaAST.isArrays(ast) && ast.rest[0] !== undefined) return Shape.List({ item: shapeOf(ast.rest[0]) })
  return Shape.Leaf()
}

/** What the schema of a request body looks at. Only objects and lists that cannot be null are looked into. */
export const wantedBy = ({ ast }: Schema.Top): Wanted => ({
  shape: shapeOf(SchemaAST.toEncoded(ast)),
  maximumItems: SchemaAST.resolveAt<number>("maximumItems")(ast) ?? Infinity
})

/** A pruned text, or why there is none. */
export type Pruned = Data.TaggedEnum<{
  /** The JSON of what the schema looks at. */
  Json: { readonly text: string }
  /** The text stops being JSON at a position, in characters. */
  Invalid: { readonly position: number }
  /** The lists have more items than they may have. Reading stopped at this count. */
  TooLong: { readonly count: number }
}>
export const Pruned = Data.taggedEnum<Pruned>()

type Frame =
  | {
      readonly _tag: "Object"
      readonly fields: ReadonlyMap<string, Shape>
      /** The JSON of each member's value, by the JSON of its name. */
      readonly members: Map<string, string>
      /** The JSON of the name of the member that is being read; undefined if the member is left out. */
      name: string | undefined
      /** The shape of that member; undefined if the schema does not know it. */
      shape: Shape | undefined
      /** How many more members that the schema does not know are kept. */
      unknownLeft: number
    }
  | { readonly _tag: "Array"; readonly item: Shape; readonly items: Array<string> }

const jsonOf = (frame: Frame) =>
  frame._tag === "Array"
    ? `[${frame.items.join(",")}]`
    : `{${Array.from(frame.members, ([name, value]) => `${name}:${value}`).join(",")}}`

/** No schema knows a longer name, even with each character escaped. */
const longestName = 6 * 64

const nameOf = (json: string): string | undefined => {
  if (json.length > longestName) return undefined
  return json.includes("\\") ? String(JSON.parse(json)) : json.slice(1, -1)
}

class Pruning implements Visitor {
  json = ""
  count = 0
  private readonly frames: Array<Frame> = []
  /** How many open containers are left out. */
  private skipped = 0
  private skippedAs = ""
  private readonly text: string
  private readonly wanted: Wanted

  constructor(text: string, wanted: Wanted) {
    this.text = text
    this.wanted = wanted
  }

  readonly open = (container: "object" | "array") => {
    if (this.skipped > 0) {
      this.skipped++
      return
    }
    const shape = this.expected()
    if (shape?._tag === "Fields" && container === "object") {
      const unknownLeft = this.frames.length === 0 ? maximumFaults : 0
      const members = new Map<string, string>()
      this.frames.push({
        _tag: "Object",
        fields: shape.fields,
        members,
        name: undefined,
        shape: undefined,
        unknownLeft
      })
    } else if (shape?._tag === "List" && container === "array") {
      this.frames.push({ _tag: "Array", item: shape.item, items: [] })
    } else {
      this.skipped = 1
      this.skippedAs = container === "object" ? "{}" : "[]"
    }
  }

  readonly close = () => {
    if (this.skipped === 0) {
      const frame = this.frames.pop()
      if (frame !== undefined) this.put(jsonOf(frame))
    } else if (--this.skipped === 0) this.put(this.skippedAs)
  }

  readonly name = (start: number, end: number) => {
    const frame = this.frames.at(-1)
    if (this.skipped > 0 || frame?._tag !== "Object") return
    const json = this.text.slice(start, end)
    const name = nameOf(json)
    frame.shape = name === undefined ? undefined : frame.fields.get(name)
    if (frame.shape !== undefined) frame.name = JSON.stringify(name)
    else frame.name = frame.unknownLeft-- > 0 ? json : undefined
  }

  readonly scalar = (start: number, end: number) => {
    if (this.skipped === 0) this.put(this.text.slice(start, end))
  }

  readonly isDone = () => this.count > this.wanted.maximumItems

  private expected() {
    const frame = this.frames.at(-1)
    if (frame === undefined) return this.wanted.shape
    return frame._tag === "Array" ? frame.item : frame.shape
  }

  private put(json: string) {
    const frame = this.frames.at(-1)
    if (frame === undefined) this.json = json
    else if (frame._tag === "Array") {
      frame.items.push(json)
      this.count++
    } else if (frame.name !== undefined) frame.members.set(frame.name, frame.shape === undefined ? "null" : json)
  }
}

/**
 * Prunes a text, yielding now and then. Of members that the schema does not know, it keeps the names of the first
 * hundred in the outermost object, for the error response.
 */
export function* prune(text: string, wanted: Wanted): Generator<void, Pruned> {
  const pruning = new Pruning(text, wanted)
  const position = yield* scan(text, pruning)
  if (pruning.isDone()) return Pruned.TooLong({ count: pruning.count })
  return position === undefined ? Pruned.Json({ text: pruning.json }) : Pruned.Invalid({ position })
}
