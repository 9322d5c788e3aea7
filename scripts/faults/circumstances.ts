import { cpus, loadavg, totalmem } from "node:os"

/** The date, the machine and its load before the run: figures of a busy machine mean little. */
export const circumstances = (date: string, postgres: string, seed: number) =>
  `${date}, ${cpus().length} cores (${cpus()[0]?.model.trim() ?? "unknown"}), ${Math.round(totalmem() / 2 ** 30)} GiB, Node ${process.version}, Postgres ${postgres}, seed ${seed}, load ${(loadavg()[0] ?? 0).toFixed(1)}`
