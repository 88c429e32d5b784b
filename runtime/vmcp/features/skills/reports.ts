/** Reports problems with skills, each once per configuration. */
import { type Events, visibleText } from '../../../observe/index.ts'

const maxReports = 1_000
const maxShown = 200

export class SkillReports {
  readonly #events: Pick<Events, 'emit'>
  readonly #reported = new Set<string>()

  constructor(events: Pick<Events, 'emit'>) {
    this.#events = events
  }

  refused(backend: string, uri: string, reason: string): void {
    const skill = shown(uri)
    if (this.#isNew([backend, skill, reason])) this.#events.emit('skill_refused', { backend, skill, reason })
  }

  listFailed(backend: string, err: unknown): void {
    this.#events.emit('skills_unread', { backend, err })
  }

  sameName(name: string, addresses: readonly string[]): void {
    const skills = addresses.slice(0, 10).map(shown)
    if (this.#isNew([name, ...skills])) this.#events.emit('skill_names_equal', { name: shown(name), skills })
  }

  #isNew(parts: readonly string[]): boolean {
    const key = JSON.stringify(parts)
    if (this.#reported.has(key) || this.#reported.size >= maxReports) return false
    this.#reported.add(key)
    return true
  }
}

/** Returns text without the parts of a URI that may contain secrets. */
function shown(text: string): string {
  return visibleText(text.replace(/[?#].*|(?<=^[a-z+.-]+:\/\/)[^/]*@/gsu, '').slice(0, maxShown))
}
