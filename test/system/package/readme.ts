/** The code in the documents. */
import { readFileSync } from "node:fs"
import { join } from "node:path"

/** A fenced block of code. */
export interface Snippet {
  /** What its fence says: `ts`, `js`, `sh`. */
  readonly language: string
  readonly line: number
  readonly code: string
  /** The file of the clone that it is, where its first line says so. */
  readonly file: string | undefined
}

/** The documents whose code the tests run. */
export const documents = [
  "README.md",
  "src/client/README.md",
  "src/cli/sync/README.md",
  "src/api/records/README.md",
  "src/operations/RUNBOOK.md"
] as const

const root = join(import.meta.dirname, "../../..")

/** The blocks of all documents. */
export const snippets = (): ReadonlyArray<Snippet> => documents.flatMap((path) => snippetsOf(join(root, path)))

/** The blocks of a document, without the indentation of a list. */
export const snippetsOf = (path: string): ReadonlyArray<Snippet> => {
  const text = readFileSync(path, "utf8")
  return [...text.matchAll(/^( *)```(\w+)\n([\s\S]*?)^ *```$/gm)].map(
    ({ 1: indent = "", 2: language = "", 3: indented = "", index }) => {
      const code = indented.replaceAll(new RegExp(`^${indent}`, "gm"), "")
      return {
        language,
        line: text.slice(0, index).split("\n").length,
        code,
        file: /^\/\/ (src\/\S+)\n/.exec(code)?.[1]
      }
    }
  )
}
