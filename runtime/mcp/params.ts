/** The params of a message, read. */
import { emptyObject, JsonObject } from './json/object.ts'
import { type Message, MessageError, whyUnread } from './message.ts'
import { withoutNulls } from './param-types.ts'

/** Members of params that are read here, as far as they are objects and nobody else looks at them first. */
const readObjects = ['ref', 'notifications', 'inputResponses'] as const

/**
 * Returns the params of a message as an object. Absent params read as empty. Optional params that are null are left out.
 * Throws MessageError INVALID_PARAMS when the params, or an object in them that is read further on, name a member twice.
 */
export function paramsOf(message: Message): JsonObject {
  try {
    const given = new JsonObject(message.params ?? emptyObject.bytes, { ignoreCase: true })
    const params = withoutNulls(message.method, given)
    for (const name of readObjects) params.object(name)
    return params
  } catch (cause) {
    const why = whyUnread(cause)
    if (why === undefined) throw cause
    throw new MessageError('INVALID_PARAMS', message.id, { detail: `Invalid params: ${why}`, cause })
  }
}
