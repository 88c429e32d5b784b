/** Finds the token that a server of `gatehouse up` requires from local programs. */
import type { ProxySettings } from '../../config/index.ts'
import { Secret } from '../../observe/index.ts'
import { runningServerAt } from './running.ts'

/**
 * Returns the settings of a proxy in front of `url`, with the token of the session that runs this server. Returns the
 * settings unchanged if the server requires no token, or if the user has chosen a credential. Each request reads the
 * token again, because every start of `gatehouse up` replaces it.
 */
export function withLocalToken(config: ProxySettings, url: URL): ProxySettings {
  const first = runningServerAt(url)?.token
  if (first === undefined || config.remote.kind !== 'none') return config
  const token = () => new Secret(runningServerAt(url)?.token ?? first)
  return { ...config, remote: { kind: 'bearer', token } }
}
