/** What becomes of ids in a map. */
import { assert, it } from "@effect/vitest"
import { hashOf } from "../../../scripts/scale/groups.ts"

it("The hash of an organization is of the bytes of a header, where a header can have them", () => {
  // printf org_oakridge | sha256sum
  assert.strictEqual(hashOf("org_oakridge"), "C1183DCE5C121AF98C51E0D7EC8EBBBE033CCAD1F6931B4E6652B49A7B578DFE")
  // printf 'org_\xe9' | sha256sum
  assert.strictEqual(hashOf("org_é"), "8A48B32D825838C02C81D367D071DC5EC96469C6EE2990C76D8E51F2DAE6D325")
  for (const id of ["", " org", "org\t", "org\n7", "org_ł", "org_\u{1f415}"]) assert.isUndefined(hashOf(id), id)
})
