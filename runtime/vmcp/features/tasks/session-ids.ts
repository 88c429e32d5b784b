/**
 * Remembers which id a session's client uses for a backend's task, so that the backend's status notifications reach the
 * client under that id. Notifications are optional, so the memory is bounded and local to this process.
 */
import { LRUCache } from 'lru-cache'
import type { TaskRef } from '../../model/task.ts'

const maxIds = 20_000

export class SessionTaskIds {
  readonly #refs = new LRUCache<string, TaskRef>({ max: maxIds })

  add(sessionId: string, ref: TaskRef): void {
    this.#refs.set(keyOf(sessionId, ref.backend, ref.taskId), ref)
  }

  find(sessionId: string, backend: string, taskId: string): TaskRef | undefined {
    return this.#refs.get(keyOf(sessionId, backend, taskId))
  }
}

function keyOf(sessionId: string, backend: string, taskId: string): string {
  return JSON.stringify([sessionId, backend, taskId])
}
