/** Keys that nobody configured, made once for all processes of one server: what one signs, the others know. */
import { GatehouseError, isFields } from '../../../schemas/index.ts'
import type { Store } from '../../store/index.ts'
import { type EphemeralKeys, type KeyRing, makeEphemeralKeys, ringOf } from './key-ring.ts'

const name = 'ephemeral-keys'

/** The ring of the store; of many that ask at a time one makes it. Rejects with STORE_DOWN. */
export async function sharedRing(shared: Store): Promise<KeyRing> {
  let text = await shared.get(name)
  if (text === undefined) {
    await shared.set(name, JSON.stringify(makeEphemeralKeys()), { onlyIf: 'absent' })
    text = await shared.get(name)
  }
  const keys: unknown = text === undefined ? undefined : JSON.parse(text)
  if (!isKeys(keys)) throw new GatehouseError('STORE_DOWN')
  return ringOf(keys)
}

function isKeys(value: unknown): value is Readonly<Record<string, unknown>> & EphemeralKeys {
  return isFields(value) && typeof value['signingKey'] === 'string' && typeof value['hmacSecret'] === 'string'
}
