/** Filters calls. The server applies the filter to lists, and the pages apply it to live rows. */
import type { CallView } from '../api.ts'

/** A filter for calls. Empty members match every call. */
export interface CallFilter {
  /** Substring of the caller's name or subject, or of the acting client. */
  readonly caller: string
  readonly backend: string
  /** Tool name, as used by clients or by the backend. */
  readonly tool: string
  readonly outcome: string
  /** Substring of any text in the call. */
  readonly text: string
  /** `calls` hides protocol messages, such as handshakes and lists. */
  readonly messages: string
}

/** True for calls, which the totals count. False for protocol messages, such as handshakes and lists. */
export function countsAsCall(method: string): boolean {
  return method === 'tools/call' || method === 'prompts/get' || method === 'resources/read'
}

/** Returns a predicate for calls; `caller` and `text` ignore case. */
export function callTest({
  caller,
  backend,
  tool,
  outcome,
  text,
  messages,
}: CallFilter): (call: CallView) => boolean {
  const wantedCaller = caller.toLowerCase()
  const wantedText = text.toLowerCase()
  return (call) => {
    if (messages === 'calls' && !countsAsCall(call.method)) return false
    if (backend !== '' && call.backend !== backend) return false
    if (tool !== '' && call.name !== tool && call.original !== tool) return false
    if (outcome !== '' && call.outcome !== outcome) return false
    const { sub = '', name = '', actor = '', client = '' } = call.caller ?? {}
    if (!has([sub, name, actor], wantedCaller)) return false
    const { method, original = '', error } = call
    const texts = [method, call.name ?? '', original, call.backend ?? '', sub, name, actor, client]
    return has([...texts, error?.message ?? ''], wantedText)
  }
}

function has(texts: readonly string[], part: string): boolean {
  return part === '' || texts.some((text) => text.toLowerCase().includes(part))
}
