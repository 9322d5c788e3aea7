import { cpus, loadavg, totalmem } from "node:os"
import { DateTime } from "effect"

/** The date, the machine and its load before the run: figures of a busy machine mean little. */
export const caption = (run: string) =>
  `${DateTime.formatIsoDateUtc(DateTime.nowUnsafe())}, ${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, load ${(loadavg()[0] ?? 0).toFixed(1)}; ${run}`
