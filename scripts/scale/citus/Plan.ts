/** What EXPLAIN says of a statement on a coordinator of Citus: to how many shards it goes. */

/** Where a statement goes. */
export type Verdict =
  /** To no shard: it reads what this server has, such as copies of tables. */
  | { readonly _tag: "Local" }
  /** To one shard. */
  | { readonly _tag: "Single" }
  /** To several, or to one after the other. */
  | { readonly _tag: "Several"; readonly tasks: number; readonly subplans: number }

/** What the lines of a plan say. */
export const verdictOf = (lines: ReadonlyArray<string>): Verdict => {
  const counts = lines.flatMap((line) => /^\s*Task Count: (\d+)/.exec(line)?.[1] ?? [])
  const subplans = lines.filter((line) => /Distributed Subplan/.test(line)).length
  const tasks = counts.reduce((sum, count) => sum + Number(count), 0)
  if (counts.length === 0) {
    return lines.some((line) => /Citus/.test(line)) ? { _tag: "Several", tasks, subplans } : { _tag: "Local" }
  }
  return tasks === 1 && subplans === 0 ? { _tag: "Single" } : { _tag: "Several", tasks, subplans }
}
