/**
 * Parses a server's lines into messages. A line that is not a JSON-RPC message, such as a banner or a JSON log line, is
 * passed on as log output. An unreadable JSON-RPC 2.0 response becomes an error for its request.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { errorMessage, type Message, readServerMessage, responseIdIn, scanMessage } from '../../mcp/index.ts'
import { limitToOncePerMinute, type Log } from '../../net/index.ts'

export interface MessageHandlers {
  readonly onMessage: (message: Message) => void
  /** Receives the beginning of each line that is not a message. */
  readonly onText?: (line: string) => void
}

const maxTextBytes = 2_000

/**
 * Returns a function that logs why a response from the server cannot be read; the client receives only
 * BACKEND_PROTOCOL.
 */
export function makeUnreadableReporter(log: Log): (cause: unknown) => void {
  return limitToOncePerMinute((cause: unknown) =>
    log.warn('a response from the server cannot be read; its request fails', { err: cause }),
  )
}

/**
 * Returns the line handler for one process. The handler never throws or rejects. A response that cannot be read becomes
 * an error, so that the client does not wait forever.
 */
export function messagesOf(
  log: Log,
  { onMessage, onText }: MessageHandlers,
): (line: Buffer) => void | Promise<void> {
  const reportUnreadable = makeUnreadableReporter(log)
  let hasWarned = false
  const isText = (line: Buffer): void => {
    const text = line.toString('utf8', 0, maxTextBytes).trimEnd()
    if (text !== '') onText?.(text)
    // Warn once per process: a server that logs to standard output must not flood our log.
    if (hasWarned) return
    hasWarned = true
    log.warn(
      'the server printed a line on standard output that is not a JSON-RPC message; such lines are dropped',
    )
  }
  const use = (message: Message): void => {
    try {
      onMessage(message)
    } catch (error) {
      log.warn('failed to process a message from the server; message dropped', { err: error })
    }
  }
  const failed = (line: Buffer, cause: unknown): void => {
    const id = responseIdIn(line)
    if (id === undefined) return isText(line)
    reportUnreadable(cause)
    use(scanMessage(errorMessage(id, new GatehouseError('BACKEND_PROTOCOL', { cause }))))
  }
  return function onLine(line) {
    try {
      const message = readServerMessage(line)
      return message instanceof Promise
        ? message.then(use, (cause: unknown) => failed(line, cause))
        : use(message)
    } catch (cause) {
      return failed(line, cause)
    }
  }
}
