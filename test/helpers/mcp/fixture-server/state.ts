/** Mutable state of a running fixture backend, and its records for tests. */
import { EventEmitter } from 'node:events'

export interface FixtureEvents {
  tools: []
  prompts: []
  updated: [uri: string]
  /** Emitted when a call of `wait` has begun, or was cancelled. */
  waiting: []
  cancelled: []
}

export class FixtureState {
  readonly events = new EventEmitter<FixtureEvents>()
  extraTool = false
  /** Number of additional tools, which are listed on several pages. */
  crowd = 0
  extraPrompt = false
  /** Received HTTP requests: method, path and headers. */
  readonly requests: {
    method: string
    url: string
    headers: Record<string, string | string[] | undefined>
  }[] = []

  constructor() {
    // Each session has one listener of each kind.
    this.events.setMaxListeners(0)
  }

  toggleTool(): void {
    this.extraTool = !this.extraTool
    this.events.emit('tools')
  }

  togglePrompt(): void {
    this.extraPrompt = !this.extraPrompt
    this.events.emit('prompts')
  }

  update(uri: string): void {
    this.events.emit('updated', uri)
  }
}

const crowdPage = 500

/** Returns one page of all tools: everything at once unless there are additional tools. */
export function pageOf<T>(
  tools: readonly T[],
  state: FixtureState,
  cursor: string | undefined,
): { tools: (T | typeof extraTool)[]; nextCursor?: string } {
  const all = [...tools, ...(state.extraTool ? [extraTool] : []), ...crowd(state.crowd)]
  if (state.crowd === 0) return { tools: all }
  const from = Number(cursor ?? 0)
  const next = from + crowdPage
  const page = { tools: all.slice(from, next) }
  return next < all.length ? { ...page, nextCursor: String(next) } : page
}

function crowd(size: number): (typeof extraTool)[] {
  return Array.from({ length: size }, (_, i) => ({
    ...extraTool,
    name: `crowd_${String(i).padStart(5, '0')}`,
  }))
}

const extraTool = {
  name: 'extra_tool',
  description: 'Comes and goes',
  inputSchema: { type: 'object' as const },
}
export const extraPrompt = { name: 'extra_prompt', description: 'Comes and goes' }
