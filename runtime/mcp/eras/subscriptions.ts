/**
 * Implements `subscriptions/listen` of the stateless era, with its filter and the id that marks each message of a
 * subscription.
 * Source: MCP 2026-07-28, patterns/subscriptions.
 */
import { emptyObject, JsonObject } from '../json/object.ts'
import { metaKey } from '../protocol.ts'
import { notificationMessage, resultMessage } from '../write.ts'

/** Lists for which a server announces changes. */
export type AnnouncedList = 'tools' | 'prompts' | 'resources'

const lists: readonly AnnouncedList[] = ['tools', 'prompts', 'resources']

/** Lists and resources that a subscription covers. */
export interface ListenFilter {
  readonly kinds: Iterable<AnnouncedList>
  readonly uris: Iterable<string>
  /** Ids of tasks (extension `io.modelcontextprotocol/tasks`). */
  readonly taskIds?: readonly string[]
}

export function listChangedMethod(kind: AnnouncedList): string {
  return `notifications/${kind}/list_changed`
}

/** Returns the changed list that a notification announces. Returns undefined for other notifications. */
export function changedList(method: string): AnnouncedList | undefined {
  return lists.find((kind) => method === listChangedMethod(kind))
}

/** Returns the lists for which the server announces changes. */
export function announcedLists(capabilities: JsonObject | undefined): readonly AnnouncedList[] {
  return lists.filter((kind) => capabilities?.object(kind)?.value('listChanged') === true)
}

/** Reads the `notifications` member of a subscription or of an acknowledgement. Ignores unknown and invalid members. */
export function readFilter(filter: JsonObject): {
  readonly kinds: AnnouncedList[]
  readonly uris: string[]
  readonly taskIds: string[]
} {
  return {
    kinds: lists.filter((kind) => filter.value(`${kind}ListChanged`) === true),
    uris: textsIn(filter.value('resourceSubscriptions')),
    taskIds: textsIn(filter.value('taskIds')),
  }
}

function textsIn(value: unknown): string[] {
  return Array.isArray(value) ? [...new Set(value.filter((text) => typeof text === 'string'))] : []
}

/** Returns the raw `notifications` member for a filter. */
export function filterText({ kinds, uris, taskIds = [] }: ListenFilter): string {
  const filter: Record<string, unknown> = {}
  for (const kind of kinds) filter[`${kind}ListChanged`] = true
  const resources = [...uris]
  if (resources.length > 0) filter['resourceSubscriptions'] = resources
  if (taskIds.length > 0) filter['taskIds'] = taskIds
  return JSON.stringify(filter)
}

/** Returns the raw id of a notification's subscription. */
export function subscriptionOf(params: JsonObject): string | undefined {
  return params.object('_meta')?.raw(metaKey.subscriptionId)?.toString()
}

/** Sets the raw subscription id in the `_meta` of params or of a result. Removes the id if `id` is undefined. */
export function withSubscription(object: JsonObject, id: string | undefined): Buffer {
  const meta = object.object('_meta') ?? emptyObject
  const isEmpty = id === undefined && meta.names().every((name) => name === metaKey.subscriptionId)
  return object.with({ _meta: isEmpty ? undefined : meta.with({ [metaKey.subscriptionId]: id }) })
}

/** Returns the first message of a subscription, with the part of the filter that the server accepted. */
export function acknowledgement(id: string, accepted: ListenFilter): Buffer {
  const params = `{"_meta":{"${metaKey.subscriptionId}":${id}},"notifications":${filterText(accepted)}}`
  return notificationMessage('notifications/subscriptions/acknowledged', params)
}

/** Returns the result with which a server closes a subscription. `serverInfo` is raw JSON. */
export function subscriptionEnd(id: string, serverInfo?: string): Buffer {
  const info = serverInfo === undefined ? '' : `,"${metaKey.serverInfo}":${serverInfo}`
  return resultMessage(id, `{"resultType":"complete","_meta":{"${metaKey.subscriptionId}":${id}${info}}}`)
}
