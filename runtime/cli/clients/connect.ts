/**
 * Connects clients to a gateway for as long as it runs: `gatehouse run --connect`. Then each file has again what it had.
 */
import { connectionEntry } from '../../clients/index.ts'
import { printError } from '../output.ts'
import { clientNamed } from './choose.ts'
import {
  bridgeProgram,
  operationOn,
  refuseMissingFolder,
  type PlaceOptions,
  type AddOptions,
} from './client.ts'
import { thisHost } from './host.ts'
import { addEntry, type FileOperation, undoOperation } from './operate.ts'
import { hashOfEntry } from './records.ts'

export interface Connected {
  /** Takes the entries out again. */
  undo(): Promise<void>
}

const place: PlaceOptions = {
  name: 'gatehouse',
  scope: 'user',
  replace: false,
  dryRun: false,
  whileRunning: false,
}

/** What a client refuses is told, and the others go on. */
export async function connectClients(words: readonly string[], url: string): Promise<Connected> {
  const host = thisHost()
  const done: FileOperation[] = []
  for (const word of words) {
    try {
      const client = clientNamed(word)
      const program = bridgeProgram(client, {
        ...place,
        create: false,
        url,
        stdio: false,
        print: false,
      } satisfies AddOptions)
      const entry = connectionEntry({ client, name: place.name, url, program })
      const operation = operationOn(client, place, host)
      refuseMissingFolder(operation.location, host)
      const { outcome } = await addEntry(operation, entry)
      // An entry that was there before stays.
      if (outcome === 'none') continue
      done.push({ ...operation, wrote: hashOfEntry(entry) })
      printError(`Connected ${word}; its file goes back when this ends.`)
    } catch (error) {
      printError(`${word}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return {
    async undo() {
      for (const operation of done) {
        await undoOperation(operation).catch((error: unknown) => {
          printError(
            `${operation.location.client}: ${error instanceof Error ? error.message : String(error)}`,
          )
        })
      }
    },
  }
}
