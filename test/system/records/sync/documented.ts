/** The table of the documentation, as a client reads it: which resource has which time, filter and deleted records. */
import { OpenApi } from "effect/http-api"
import { DataApi } from "../../../../src/api/DataApi.ts"
import type { Resource } from "./searchClient.ts"

const { description = "" } = OpenApi.fromApi(DataApi).info

const namesIn = (cell = "") => [...cell.matchAll(/`(\w+)`/g)].map(([, name = ""]) => name)

/** The resources that the table lists. */
export const documented: ReadonlyArray<Resource> = description
  .split("\n")
  .filter((line) => line.startsWith("| "))
  .map((line) => line.split("|").map((cell) => cell.trim()))
  .filter(([, names]) => names !== "resource" && names !== "---")
  .flatMap(([, names = "", time, since, deleted]) =>
    names.split(", ").map((name) => ({
      name,
      time: namesIn(time)[0],
      since: namesIn(since)[0],
      hasDeleted: namesIn(deleted).includes("include_deleted")
    }))
  )
