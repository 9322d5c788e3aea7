/** Every rule that must hold whatever the database. */
import type { Tests } from "../../support/Service.ts"
import { filters } from "./filters.ts"
import { http } from "./http.ts"
import { isolation } from "./isolation.ts"
import { pages } from "./pages.ts"
import { refusals } from "./refusals.ts"

export const everyRule = (it: Tests) => {
  pages(it)
  filters(it)
  refusals(it)
  isolation(it)
  http(it)
}
