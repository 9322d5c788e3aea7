/**
 * The migrations of an adopter: none in this package. In a copy of the repository, add yours here, each by a name that no
 * other one has. They are recorded as `own/NAME`, and those of a later release are applied whatever your names are.
 */
import type { Migrations } from "../Migration.ts"

const own: Migrations = {}

export default own
