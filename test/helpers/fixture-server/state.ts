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

export const extraTool = {
  name: 'extra_tool',
  description: 'Comes and goes',
  inputSchema: { type: 'object' as const },
}
export const extraPrompt = { name: 'extra_prompt', description: 'Comes and goes' }
