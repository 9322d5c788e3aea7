/**
 * Breaks the product on purpose, one rule at a time, and expects the fast tests to notice. Exits with code 1 if a mutant
 * survives, or no longer applies to the code.
 *
 *     npm run mutants
 *     npm run mutants -- deletions/
 *     npm run mutants -- 'takes over'
 *
 * `test/mutants` has a file for each room of src. A mutant is three or more lines: its rule, its file, and what it removes
 * (`-`) and adds (`+`). Tests of the room run first, then all fast ones.
 */
import { spawnSync } from "node:child_process"
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

const root = join(import.meta.dirname, "..")
const wanted = process.argv[2] ?? ""

const mutantOf = (block: string) => {
  const [rule = "", file = "", ...lines] = block.split("\n")
  const marked = (mark: string) =>
    lines
      .filter((line) => line.startsWith(mark))
      .map((line) => line.slice(2))
      .join("\n")
  return { rule, file, removed: marked("- "), added: marked("+ ") }
}

const mutants = globSync("test/mutants/*.txt", { cwd: root })
  .toSorted()
  .flatMap((path) => readFileSync(join(root, path), "utf8").trim().split(/\n\n+/))
  .map(mutantOf)
  .filter(({ file, rule }) => `${file} ${rule}`.includes(wanted))

const copy = mkdtempSync(join(tmpdir(), "practice-data-mutants-"))
cpSync(root, copy, { recursive: true, filter: (path) => !/\/(node_modules|\.git|\.data)(\/|$)/.test(path) })
symlinkSync(join(root, "node_modules"), join(copy, "node_modules"))

const vitest =
  "node_modules/vitest/vitest.mjs run --config test/vitest.config.ts --root . --bail=1 --passWithNoTests".split(" ")

/** Runs fast tests of the copy. True if all pass, in so many milliseconds. */
const pass = (folders: ReadonlyArray<string>, timeout: number) => {
  const { status } = spawnSync(process.execPath, [...vitest, "--tags-filter=!long && !browser", ...folders], {
    cwd: copy,
    stdio: "ignore",
    timeout,
    killSignal: "SIGKILL",
    env: { ...process.env, CI: "true" }
  })
  return status === 0
}

// Tests that fail anyway would kill everything.
const begun = performance.now()
if (!pass([], 3_600_000)) throw new Error("The fast tests do not pass before anything is broken")
// A mutant that loops without a pause has no timeout of its own.
const limit = Math.ceil(4 * (performance.now() - begun))

/** What became of a mutant. */
const tried = ({ added, file, removed }: ReturnType<typeof mutantOf>) => {
  const path = join(copy, file)
  const text = readFileSync(path, "utf8")
  if (removed === "" || text.split(removed).length !== 2) return "does not apply"
  writeFileSync(
    path,
    text.replace(removed, () => added)
  )
  const [, room = ""] = file.split("/")
  const passed = pass([`test/unit/${room}/`, `test/integration/${room}/`], limit) && pass([], limit)
  writeFileSync(path, text)
  return passed ? "survives" : "killed"
}

const ends = mutants.map((mutant) => {
  const end = tried(mutant)
  process.stdout.write(`${end}: ${mutant.file}: ${mutant.rule}\n`)
  return end
})
rmSync(copy, { recursive: true, force: true })
const left = ends.filter((end) => end !== "killed").length
process.stdout.write(`${ends.length - left} of ${ends.length} mutants killed\n`)
process.exitCode = left === 0 ? 0 : 1
