/** Which calls fit a filter: the same rule for lists of the server and for rows that pages get as they happen. */
import type { CallView } from '../api.ts'

/** Empty members take everything. */
export interface CallFilter {
  /** Part of the name or the subject of the caller. */
  readonly caller: string
  readonly backend: string
  /** Name of the tool, as clients or as its backend call it. */
  readonly tool: string
  readonly outcome: string
  /** Part of any text of the call. */
  readonly text: string
}

/** A test of calls; upper and lower case are equal in `caller` and `text`. */
export function callTest({ caller, backend, tool, outcome, text }: CallFilter): (call: CallView) => boolean {
  const wantedCaller = caller.toLowerCase()
  const wantedText = text.toLowerCase()
  return (call) => {
    if (backend !== '' && call.backend !== backend) return false
    if (tool !== '' && call.name !== tool && call.original !== tool) return false
    if (outcome !== '' && call.outcome !== outcome) return false
    const { sub = '', name = '', client = '' } = call.caller ?? {}
    if (!has([sub, name], wantedCaller)) return false
    const { method, original = '', error } = call
    const texts = [method, call.name ?? '', original, call.backend ?? '', sub, name, client]
    return has([...texts, error?.message ?? ''], wantedText)
  }
}

function has(texts: readonly string[], part: string): boolean {
  return part === '' || texts.some((text) => text.toLowerCase().includes(part))
}
