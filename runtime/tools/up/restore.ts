/** Restores the clients' files that `gatehouse up` changed. */
import { restoreServers, type RestoredFile } from '../../toolkit/client-files/park.ts'
import { whyNotChangeable } from '../../toolkit/client-files/running.ts'
import type { ParkedFile } from '../../toolkit/client-files/park-journal.ts'
import { shortPath } from '../../toolkit/client-files/host.ts'
import { clientRow, type Host } from '../../toolkit/clients/index.ts'
import { entryName } from './serve.ts'
import type { UpState } from './state.ts'

export interface RestoreReport {
  readonly client: string
  readonly file: string
  readonly outcome: RestoredFile['outcome'] | 'failed'
  readonly notes: readonly string[]
}

export interface RestoreOptions {
  readonly host: Host
  /** Also restores the files of clients that are running and may overwrite them. */
  readonly whileRunning: boolean
}

/** Restores every file. An error for one file does not stop the work for other files. */
export async function restoreFiles(
  state: UpState,
  options: RestoreOptions,
): Promise<readonly RestoreReport[]> {
  const reports: RestoreReport[] = []
  for (const parked of state.journal.read()) reports.push(await restoreFile(parked, state, options))
  return reports
}

async function restoreFile(
  parked: ParkedFile,
  { journal, records }: UpState,
  { host, whileRunning }: RestoreOptions,
): Promise<RestoreReport> {
  const { client, file } = parked
  // A restored file is no longer in the journal, so a client that overwrites the file would lose its servers.
  const why = whileRunning ? undefined : whyNotChangeable(client, host, 'down')
  if (why !== undefined) return { client, file, outcome: 'failed', notes: [why] }
  try {
    const { outcome, notes } = await restoreServers(parked, { journal, records, name: entryName })
    return { client, file, outcome, notes }
  } catch (error) {
    return {
      client,
      file,
      outcome: 'failed',
      notes: [error instanceof Error ? error.message : String(error)],
    }
  }
}

const sentences: Readonly<Record<RestoreReport['outcome'], string>> = {
  unchanged: 'is as it was',
  exact: 'restored, byte for byte',
  merged:
    'has changed since gatehouse up: removed only the gateway’s entry, and put back the entries that were absent',
  failed: 'could not be restored',
}

export function restoreLines(reports: readonly RestoreReport[], host: Host): readonly string[] {
  return reports.map(({ client, file, outcome, notes }) => {
    const title = clientRow(client as Parameters<typeof clientRow>[0]).title
    const more = notes.length > 0 ? ` (${notes.join('; ')})` : ''
    return `${title}: ${shortPath(file, host)} ${sentences[outcome]}${more}`
  })
}
