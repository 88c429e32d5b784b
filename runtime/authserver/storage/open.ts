/** Opens the store that the configuration names; the host closes it. */
import type { StorageSettings } from '../../config/index.ts'
import type { Log } from '../../net/index.ts'
import { makeMemoryStore, makeRedisStore, type Store } from '../../store/index.ts'

/** `shared` is the memory of several processes. Connects in the background; whether it is there is readiness. Throws INVALID_CONFIG. */
export function openAuthServerStore(storage: StorageSettings, log: Log, shared?: Store): Store {
  if (storage.type === 'memory') return shared?.namespace('records:') ?? makeMemoryStore()
  return makeRedisStore(storage.redis, {
    onChange: ({ up, cause }) =>
      up
        ? log.info('the store of the authorization server answers again')
        : log.error('the store of the authorization server does not answer', { err: cause }),
  })
}
