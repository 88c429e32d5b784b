/** From the lines of a server to its messages. A line that is none is dropped: nothing is guessed out of it. */
import { type Message, readServerMessage } from '../../mcp/index.ts'
import type { Log } from '../../net/index.ts'

/** What handles a line; `hand` gets each message. Never throws and never rejects. */
export function messagesOf(
  log: Log,
  hand: (message: Message) => void,
): (line: Buffer) => void | Promise<void> {
  const warn = (): void =>
    log.warn('the server printed a line that is not a JSON-RPC message; it was dropped')
  const use = (message: Message): void => {
    try {
      hand(message)
    } catch (error) {
      log.warn('a message of the server could not be used; it was dropped', { err: error })
    }
  }
  return function onLine(line) {
    try {
      const message = readServerMessage(line)
      return message instanceof Promise ? message.then(use, warn) : use(message)
    } catch {
      return warn()
    }
  }
}
