import * as Field from "./Field.ts"
import * as Filter from "./Filter.ts"
import * as Resource from "./Resource.ts"

export const Pet = Field.record("Pet", "A pet of a client.", {
  id: Field.id("pet"),
  name: Field.text("Name of the pet.", "Biscuit"),
  species: Field.text("Species.", "Canine"),
  breed: Field.text("Breed.", "Beagle"),
  sex: Field.text("Sex.", "female"),
  date_of_birth: Field.date("Day of birth."),
  clinic: Field.ref("clinic", "The clinic."),
  client_id: Field.ref("client", "The client."),
  ...Field.times
})

export const pets = Resource.make({
  name: "pets",
  record: Pet,
  hidden: {},
  orderedBy: "updated_at",
  filters: {
    ...Filter.named("id", "clinic", "client_id", "species"),
    ...Filter.timesSince
  }
})
