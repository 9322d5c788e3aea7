/** PromQL as a small tree: the official grammar reads it, and what the evaluator does not know is an error by its name. */
import { parser } from "@prometheus-io/lezer-promql"
import { Data, Result } from "effect"

/** A query that is not PromQL, or uses more of it than is known here. */
export class QueryError extends Data.TaggedError("QueryError")<{ readonly message: string }> {}

export const matchOperators = ["=", "!=", "=~", "!~"] as const
export const binaryOperators = ["+", "-", "*", "/", "==", "!=", ">", "<", ">=", "<=", "and", "or", "unless"] as const
export const aggregations = ["sum", "min", "max", "avg", "count", "topk"] as const
export const functions = [
  "abs",
  "absent",
  "avg_over_time",
  "changes",
  "clamp_min",
  "count_over_time",
  "delta",
  "histogram_quantile",
  "increase",
  "last_over_time",
  "max_over_time",
  "min_over_time",
  "rate",
  "resets",
  "scalar",
  "sum_over_time",
  "time",
  "timestamp",
  "vector"
] as const

export type MatchOperator = (typeof matchOperators)[number]
export type BinaryOperator = (typeof binaryOperators)[number]
export type Aggregation = (typeof aggregations)[number]
export type FunctionName = (typeof functions)[number]

export interface Matcher {
  readonly label: string
  readonly operator: MatchOperator
  readonly value: string
}

/** Some series, now or over a range up to now; times are in seconds. */
export interface Selector {
  readonly _tag: "Selector"
  readonly name: string
  readonly matchers: ReadonlyArray<Matcher>
  readonly range: number | undefined
  readonly offset: number
}

export interface Grouping {
  readonly kind: "by" | "without"
  readonly labels: ReadonlyArray<string>
}

export interface Matching {
  readonly kind: "on" | "ignoring"
  readonly labels: ReadonlyArray<string>
  /** The side that may have several for one of the other, and the labels that it takes over. */
  readonly many: "left" | "right" | undefined
  readonly include: ReadonlyArray<string>
}

export type Expression =
  | { readonly _tag: "Number"; readonly value: number }
  | Selector
  | { readonly _tag: "Call"; readonly name: FunctionName; readonly args: ReadonlyArray<Expression> }
  | {
      readonly _tag: "Aggregate"
      readonly operator: Aggregation
      readonly grouping: Grouping
      readonly args: ReadonlyArray<Expression>
    }
  | {
      readonly _tag: "Binary"
      readonly operator: BinaryOperator
      readonly isBool: boolean
      readonly matching: Matching
      readonly left: Expression
      readonly right: Expression
    }

type Node = ReturnType<typeof parser.parse>["topNode"]

const units = { ms: 0.001, s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 } as const

const isUnit = (text: string): text is keyof typeof units => Object.hasOwn(units, text)

/** The seconds of a duration such as `1h30m`. */
const secondsOf = (text: string) =>
  [...text.matchAll(/(\d+)(ms|[smhdwy])/g)].reduce(
    (sum, [, count, unit = ""]) => sum + Number(count) * (isUnit(unit) ? units[unit] : Number.NaN),
    0
  )

const isOneOf = <const Names extends ReadonlyArray<string>>(names: Names, name: string): name is Names[number] =>
  names.includes(name)

const childrenOf = (node: Node) => {
  const children: Array<Node> = []
  for (let child = node.firstChild; child !== null; child = child.nextSibling) children.push(child)
  return children
}

const unknown = (what: string): never => {
  throw new QueryError({ message: `Not known here: ${what}` })
}

const expect = <A>(value: A | null | undefined, what: string): A => value ?? unknown(what)

const oneOf = <const Names extends ReadonlyArray<string>>(names: Names, name: string): Names[number] =>
  isOneOf(names, name) ? name : unknown(name)

/** Reads the tree of the grammar. */
const reader = (query: string) => {
  const textOf = (node: Node) => query.slice(node.from, node.to)

  const stringOf = (node: Node) =>
    textOf(node)
      .slice(1, -1)
      .replaceAll(/\\(.)/g, (_, escaped: string) => (escaped === "n" ? "\n" : escaped))

  const labelsOf = (node: Node | null) => (node === null ? [] : node.getChildren("LabelName").map(textOf))

  const matcherOf = (node: Node): Matcher => ({
    label: textOf(expect(node.getChild("LabelName"), textOf(node))),
    operator: oneOf(matchOperators, textOf(expect(node.getChild("MatchOp"), textOf(node)))),
    value: stringOf(expect(node.getChild("StringLiteral"), textOf(node)))
  })

  const selectorOf = (node: Node): Selector => ({
    _tag: "Selector",
    name: textOf(expect(node.getChild("Identifier"), `a selector without a name: ${textOf(node)}`)),
    matchers: childrenOf(node)
      .filter(({ name }) => name === "LabelMatchers")
      .flatMap(childrenOf)
      .map(matcherOf),
    range: undefined,
    offset: 0
  })

  const argumentsOf = (node: Node) => childrenOf(expect(node.getChild("FunctionCallBody"), textOf(node))).map(read)

  const matchingOf = (node: Node | null): Matching => {
    if (node === null) return { kind: "ignoring", labels: [], many: undefined, include: [] }
    const [labels = null, include = null] = node.getChildren("GroupingLabels")
    const isLeft = node.getChild("GroupLeft") !== null
    const isRight = node.getChild("GroupRight") !== null
    return {
      kind: node.getChild("On") === null ? "ignoring" : "on",
      labels: labelsOf(labels),
      many: isLeft ? "left" : isRight ? "right" : undefined,
      include: labelsOf(include)
    }
  }

  const binaryOf = (node: Node): Expression => {
    const children = childrenOf(node)
    const left = expect(children[0], textOf(node))
    const operator = expect(children[1], textOf(node))
    const right = expect(children.at(-1), textOf(node))
    return {
      _tag: "Binary",
      operator: oneOf(binaryOperators, textOf(operator).toLowerCase()),
      isBool: node.getChild("BoolModifier") !== null,
      matching: matchingOf(node.getChild("MatchingModifierClause")),
      left: read(left),
      right: read(right)
    }
  }

  const aggregateOf = (node: Node): Expression => {
    const modifier = node.getChild("AggregateModifier")
    return {
      _tag: "Aggregate",
      operator: oneOf(aggregations, textOf(expect(node.getChild("AggregateOp"), textOf(node)))),
      grouping: {
        kind: modifier === null || modifier.getChild("By") !== null ? "by" : "without",
        labels: modifier === null ? [] : labelsOf(modifier.getChild("GroupingLabels"))
      },
      args: argumentsOf(node)
    }
  }

  const withDuration = (node: Node, change: (selector: Selector, seconds: number) => Selector) => {
    const children = childrenOf(node)
    const inner = read(expect(children[0], textOf(node)))
    const duration = textOf(expect(children.at(-1), textOf(node)))
    return inner._tag === "Selector" && /^(\d+(ms|[smhdwy]))+$/.test(duration)
      ? change(inner, secondsOf(duration))
      : unknown(textOf(node))
  }

  const read = (node: Node): Expression => {
    switch (node.name) {
      case "NumberDurationLiteral": {
        const value = Number(textOf(node).replace(/inf$/i, "Infinity"))
        return { _tag: "Number", value: Number.isNaN(value) ? unknown(textOf(node)) : value }
      }
      case "VectorSelector":
        return selectorOf(node)
      case "MatrixSelector":
        return withDuration(node, (selector, range) => ({ ...selector, range }))
      case "OffsetExpr":
        return withDuration(node, (selector, offset) => ({ ...selector, offset }))
      case "ParenExpr":
        return read(expect(node.firstChild, textOf(node)))
      case "FunctionCall":
        return {
          _tag: "Call",
          name: oneOf(functions, textOf(expect(node.getChild("FunctionIdentifier"), textOf(node)))),
          args: argumentsOf(node)
        }
      case "AggregateExpr":
        return aggregateOf(node)
      case "BinaryExpr":
        return binaryOf(node)
      default:
        return unknown(`${node.name} in ${query}`)
    }
  }
  return read
}

/** Reads a query. */
export const parse = (query: string): Result.Result<Expression, QueryError> =>
  Result.try({
    try: () => {
      const tree = parser.parse(query)
      tree.iterate({
        enter: ({ from, type }) => {
          if (type.isError) throw new QueryError({ message: `Not PromQL at ${from}: ${query}` })
        }
      })
      return reader(query)(expect(tree.topNode.firstChild, query))
    },
    catch: (error) => (error instanceof QueryError ? error : new QueryError({ message: String(error) }))
  })

/** The selectors of an expression. */
export const selectorsOf = (expression: Expression): ReadonlyArray<Selector> => {
  switch (expression._tag) {
    case "Number":
      return []
    case "Selector":
      return [expression]
    case "Call":
    case "Aggregate":
      return expression.args.flatMap(selectorsOf)
    case "Binary":
      return [...selectorsOf(expression.left), ...selectorsOf(expression.right)]
  }
}
