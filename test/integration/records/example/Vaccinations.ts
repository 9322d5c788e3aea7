/** Vaccinations of pets. */
import * as Field from "../../../../src/api/records/Field.ts"
import * as Filter from "../../../../src/api/records/Filter.ts"
import * as Resource from "../../../../src/api/records/Resource.ts"

export const Vaccination = Field.record("Vaccination", "A vaccination of a pet.", {
  id: Field.id("vaccination"),
  pet: Field.ref("pet", "The pet."),
  vaccine: Field.text("Name of the vaccine.", "Rabies"),
  dose: Field.number("Dose in millilitres.", 1.5),
  isBooster: Field.boolean("True if it repeats an earlier one."),
  ...Field.times
})

export const vaccinations = Resource.make("vaccinations", Vaccination, {
  hidden: {},
  filters: {
    id: Filter.equals("id"),
    pet: Filter.equals("pet"),
    include_boosters: Filter.includeMarked("isBooster", "Includes boosters."),
    ...Filter.timesSince
  }
})
