/** The payment processor account that is connected to a clinic. */
import { script } from "./script.ts"

export default script(`
alter table clinics add column processor_account text collate "C";
`)
