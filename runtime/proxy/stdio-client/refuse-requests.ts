/** Answers the requests of a client with an error when the conversation cannot begin, for example after a failed login. */
import type { Readable } from 'node:stream'
import { errorMessage, scanClientMessage } from '../../mcp/index.ts'
import { maxMessageBytes } from './http.ts'
import { type LineWriter, readLines } from './lines.ts'
import { Oversize } from './oversize.ts'

/** How long requests are read. Clients send `initialize` at once, so it is usually there already. */
const readMs = 250

export async function refuseRequests(input: Readable, writer: LineWriter, error: unknown): Promise<void> {
  const timer = setTimeout(() => input.destroy(), readMs)
  try {
    for await (const line of readLines(input, maxMessageBytes)) {
      const id = line instanceof Oversize ? line.id : requestIdOf(line)
      if (id !== undefined) await writer.write(errorMessage(id, error))
    }
  } catch {
    // Destroying the input is how the loop above is left.
  } finally {
    clearTimeout(timer)
  }
}

function requestIdOf(line: Buffer): string | undefined {
  try {
    const { kind, id } = scanClientMessage(line, Infinity)
    return kind === 'request' ? id : undefined
  } catch {
    return undefined
  }
}
