/**
 * Resolves TARGET for every command: a URL, a server that `gatehouse up`, `run` or `dev` runs on this machine, or a
 * resource in the current cluster.
 */
import { GatehouseError, invalidConfig } from '../../../schemas/index.ts'
import { urlOfResource } from './kubernetes.ts'
import { isUrl } from './proxy-flags.ts'
import { runningHint, runningServer, runningServers } from './running.ts'

/** Throws INVALID_CONFIG for an invalid target, and NOT_FOUND or BACKEND_UNREACHABLE for errors from the cluster. */
export async function urlOfTarget(target: string, namespace: string | undefined): Promise<URL> {
  if (isUrl(target)) return urlFrom(target)
  const found = namespace === undefined ? runningServer(target) : undefined
  if (found) return urlFrom(found.url)
  try {
    return urlFrom(await urlOfResource(target, namespace))
  } catch (error) {
    if (!(error instanceof GatehouseError) || namespace !== undefined) throw error
    const { code, message, cause } = error
    const local =
      runningServers().length === 0
        ? runningHint()
        : `no server named ${target} is running on this machine; ${runningHint({ wanted: target })}`
    throw new GatehouseError(code, { detail: `${local}\nIn the cluster: ${message}`, cause })
  }
}

function urlFrom(text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined
  if (!url || !/^https?:$/.test(url.protocol)) {
    throw invalidConfig(
      'TARGET: must be an http or https URL, the name of a running server, or a resource name',
    )
  }
  if (url.username !== '' || url.password !== '') {
    throw invalidConfig('TARGET: the URL must not contain credentials; use --remote-auth-bearer-token-file')
  }
  return url
}
