/** The links and the example of the documents. */
import { existsSync, globSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, it as test } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { expectAnswer, InProcess } from "../support/inProcess.ts"
import { snippetsOf } from "../support/snippets.ts"

const root = join(import.meta.dirname, "../..")
// The links of a quick start are those of the page that shows it.
const exclude = ["**/node_modules", "src/http/quick-start-*.md"]
const documents = ["README.md", ...globSync("{src,scripts}/**/*.md", { cwd: root, exclude })]

/** The anchors of a document: its headings as GitHub writes them, and its own. */
const anchorsOf = (text: string) => [
  ...[...text.matchAll(/^#+ (.*)$/gm)].map(([, heading = ""]) =>
    heading
      .toLowerCase()
      .replaceAll(/[^\w\- ]/g, "")
      .replaceAll(" ", "-")
  ),
  ...[...text.matchAll(/<a id="(\w+)">/g)].map(([, id = ""]) => id)
]

test("each link of a document leads to a file, and to a heading in it", () => {
  const broken = documents.flatMap((path) =>
    [...readFileSync(join(root, path), "utf8").matchAll(/\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)/g)].flatMap(
      ([link, file = "", anchor]) => {
        const target = file === "" ? path : join(dirname(path), file)
        if (!existsSync(join(root, target))) return [`${path}: ${link}`]
        const isFound = anchor === undefined || anchorsOf(readFileSync(join(root, target), "utf8")).includes(anchor)
        return isFound ? [] : [`${path}: ${link}`]
      }
    )
  )
  assert.deepStrictEqual(broken, [])
})

test("each module that the architecture names exists", () => {
  const named = [...readFileSync(join(root, "src/README.md"), "utf8").matchAll(/`([a-z/]+\/[A-Z]\w+)`/g)].map(
    ([, name]) => name
  )
  assert.isAbove(named.length, 20)
  assert.isEmpty(named.filter((name) => !existsSync(join(root, `src/${name}.ts`))))
})

test.effect("the README shows the response to its first request", () =>
  Effect.gen(function* () {
    const shown = snippetsOf("README.md").find(({ language }) => language === "json")
    const json = yield* Schema.decodeEffect(Schema.fromJsonString(Schema.Unknown))(shown?.code ?? "")
    yield* expectAnswer({ path: "/api/v3/pets/search", json: { limit: 1 } }, 200, json)
  }).pipe(Effect.provide(InProcess.layer()))
)
