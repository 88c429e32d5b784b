/**
 * State that a client sets on its server for the lifetime of a session: watched resources and the log level. A new
 * session at the target lacks this state, so a recovery sends the same requests again.
 *
 * The number and the total size of the stored requests are limited. Beyond the limits, the client must set the state
 * again after the target restarts.
 * Source: MCP 2025-11-25, server/resources "Subscriptions", server/utilities/logging.
 */
import { type Message, paramsOf } from '../../mcp/index.ts'
import type { ProxiedSessionState } from '../model/session.ts'

const maxEntries = 1_000
const maxBytes = 131_072

/** Every method that sets state contains one of these prefixes, so other bodies are not parsed. */
const hints = [Buffer.from('resources/'), Buffer.from('logging/')]

/** True when a body may contain a request that sets state. */
export function maySetState(body: Buffer): boolean {
  return hints.some((hint) => body.includes(hint))
}

/** Records an accepted request. Returns true when the state has changed. */
export function noteState(state: ProxiedSessionState, message: Message): boolean {
  switch (message.method) {
    case 'logging/setLevel':
      return keep(state, 'level', message.bytes)
    case 'resources/subscribe':
      return keep(state, keyOf(message), message.bytes)
    case 'resources/unsubscribe':
      return state.delete(keyOf(message) ?? '')
    default:
      return false
  }
}

function keyOf(message: Message): string | undefined {
  try {
    const uri = paramsOf(message).text('uri')
    return uri === undefined ? undefined : `uri ${uri}`
  } catch {
    // A field occurs twice, so the message is ambiguous here, even though the target has accepted it.
    return undefined
  }
}

function keep(state: ProxiedSessionState, key: string | undefined, bytes: Buffer): boolean {
  if (key === undefined) return false
  if (!state.has(key) && state.size >= maxEntries) return false
  if (stateBytes(state) + bytes.length > maxBytes) return false
  state.set(key, Buffer.from(bytes))
  return true
}

export function stateBytes(state: ProxiedSessionState): number {
  let sum = 0
  for (const bytes of state.values()) sum += bytes.length
  return sum
}
