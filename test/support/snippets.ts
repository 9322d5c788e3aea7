/** The code in the documents. */
import { readFileSync } from "node:fs"
import { join } from "node:path"

/** The documents whose code the tests run. */
export const documents = [
  "README.md",
  "src/client/README.md",
  "src/app/exports/README.md",
  "src/cli/sync/README.md",
  "src/api/records/README.md",
  "src/operations/RUNBOOK.md"
] as const

/**
 * The fenced blocks of code of a document, by its path in the clone: each without the indentation of a list, and with
 * its line.
 */
export const snippetsOf = (path: string) => {
  const text = readFileSync(join(import.meta.dirname, "../..", path), "utf8")
  return [...text.matchAll(/^( *)```(\w+)\n([\s\S]*?)^ *```$/gm)].map(
    ({ 1: indent = "", 2: language = "", 3: indented = "", index }) => {
      const code = indented.replaceAll(new RegExp(`^${indent}`, "gm"), "")
      const place = `${path}:${text.slice(0, index).split("\n").length}`
      return { place, language, code }
    }
  )
}

/** The blocks of all documents. */
export const snippets = () => documents.flatMap(snippetsOf)
