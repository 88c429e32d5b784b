/** Client sessions and tasks with their owners, and hashes instead of ids. */
import { JsonObject } from '../../mcp/index.ts'
import type { ListedSession, ListedTask } from '../api.ts'
import type { ShownSession, ShownTask } from '../../observe/index.ts'
import { given, iso } from './pages.ts'

const maxText = 128

export function sessionRow(facts: ShownSession, viewer: string): ListedSession {
  const { hash, owner, subject, displayName, actor, protocolVersion, openedAt, usedAt, streams } = facts
  return {
    hash,
    caller: {
      sub: subject.slice(0, maxText),
      name: displayName.slice(0, maxText),
      ...given('actor', actor?.slice(0, maxText)),
    },
    ...given('client', clientName(facts.info)),
    era: protocolVersion,
    openedAt: iso(openedAt),
    lastUsedAt: iso(usedAt),
    streams,
    mine: owner === viewer,
  }
}

export function taskRow(task: ShownTask, viewer: string): ListedTask {
  const { hash, owner, subject, displayName, actor, tool, backend, state, startedAt, endsAt } = task
  return {
    hash,
    caller: {
      sub: subject.slice(0, maxText),
      name: displayName.slice(0, maxText),
      ...given('actor', actor?.slice(0, maxText)),
    },
    tool: tool.slice(0, maxText),
    ...given('backend', backend),
    state,
    startedAt: iso(startedAt),
    expiresAt: iso(endsAt),
    mine: owner === viewer,
  }
}

function clientName(info: Buffer | undefined): string | undefined {
  if (!info) return undefined
  try {
    const client = new JsonObject(info)
    const words = [client.text('name'), client.text('version')].filter((word) => word)
    return words.length > 0 ? words.join(' ').slice(0, maxText) : undefined
  } catch {
    return undefined
  }
}
