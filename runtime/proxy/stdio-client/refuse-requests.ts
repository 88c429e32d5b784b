/** Answers client requests with an error when the conversation cannot begin, for example after a failed login. */
import type { Readable } from 'node:stream'
import { errorMessage, scanMessage } from '../../mcp/index.ts'
import { maxMessageBytes } from './http.ts'
import { type LineWriter, readLines } from './lines.ts'
import { Oversize } from './oversize.ts'

/**
 * Time for which requests are read and refused. Clients send `initialize` immediately, so it has usually arrived
 * already.
 */
const readMs = 250

export async function refuseRequests(input: Readable, writer: LineWriter, error: unknown): Promise<void> {
  const timer = setTimeout(() => input.destroy(), readMs)
  try {
    for await (const line of readLines(input, maxMessageBytes)) {
      const id = line instanceof Oversize ? line.id : requestIdOf(line)
      if (id !== undefined) await writer.write(errorMessage(id, error))
    }
  } catch {
    // Destroying the input ends the loop above.
  } finally {
    clearTimeout(timer)
  }
}

function requestIdOf(line: Buffer): string | undefined {
  try {
    const { kind, id } = scanMessage(line, { dropNulls: true })
    return kind === 'request' ? id : undefined
  } catch {
    return undefined
  }
}
