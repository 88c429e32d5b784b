/** What changes while a fixture backend runs, and what a test may look at afterwards. */
import { EventEmitter } from 'node:events'

export interface FixtureEvents {
  tools: []
  prompts: []
  updated: [uri: string]
  /** A call of `wait` has begun, or was cancelled. */
  waiting: []
  cancelled: []
}

export class FixtureState {
  readonly events = new EventEmitter<FixtureEvents>()
  extraTool = false
  /** So many more tools, which come on pages. */
  crowd = 0
  extraPrompt = false
  /** HTTP requests seen: method, path and headers. */
  readonly requests: {
    method: string
    url: string
    headers: Record<string, string | string[] | undefined>
  }[] = []

  constructor() {
    // One listener of each kind for every session.
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

/** One page of all tools: everything at once unless there is a crowd. */
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
