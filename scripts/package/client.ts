/** Packs the client alone, whose name and repository come from `package.json`. Takes the folder for the file. */
import { execFileSync } from "node:child_process"
import { copyFileSync, cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import manifest from "../../package.json" with { type: "json" }

const root = join(import.meta.dirname, "../..")

const entry = (file: string) => ({ types: `./dist/${file}.d.ts`, default: `./dist/${file}.js` })

const folder = mkdtempSync(join(tmpdir(), "practice-data-client-"))
try {
  // The declaration maps lead to these.
  cpSync(join(root, "src/client"), join(folder, "src"), { recursive: true })
  const { license, name, repository, version } = manifest
  const own = {
    name: `${name}-client`,
    version,
    license,
    repository,
    ...("private" in manifest && { private: manifest.private }),
    description: "The client of the practice data API and of the intake of invoice deletions",
    type: "module",
    sideEffects: false,
    files: ["dist", "src/**/*.ts"],
    exports: { ".": entry("index"), "./testing": entry("testing") }
  }
  writeFileSync(join(folder, "package.json"), JSON.stringify(own, null, 2))
  const compiler = {
    extends: join(root, "scripts/package/tsconfig.json"),
    compilerOptions: {
      // What every runtime with `fetch` has.
      target: "es2022",
      lib: ["es2022"],
      rootDir: "src",
      outDir: "dist",
      declarationMap: true,
      typeRoots: [join(root, "node_modules/@types")]
    },
    include: ["src"]
  }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(compiler))
  execFileSync(process.execPath, [join(root, "node_modules/typescript/bin/tsc"), "-p", folder], { stdio: "inherit" })
  copyFileSync(join(root, "scripts/package/client.md"), join(folder, "README.md"))
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"))
  execFileSync("npm", ["pack", "--pack-destination", process.argv[2] ?? root], { cwd: folder, stdio: "inherit" })
} finally {
  rmSync(folder, { recursive: true, force: true })
}
