/** Folders that are made. */
import { existsSync, mkdirSync } from "node:fs"
import { dirname } from "node:path"

/** Makes a private folder and those above it. Node's own recursion never ends where one cannot be made, as in /proc. */
export const make = (folder: string): void => {
  if (existsSync(folder)) return
  if (dirname(folder) !== folder) make(dirname(folder))
  try {
    mkdirSync(folder, { mode: 0o700 })
  } catch (error) {
    // Another process may have made it.
    if (!existsSync(folder)) throw error
  }
}
