/**
 * Provides access to the Kubernetes API of a kubeconfig context. Loads the Kubernetes client and the hooks on demand.
 */
import type { ClusterResponse, ResourcePath } from '../../../hooks/index.ts'
import { type Fields, fieldsOf, invalidConfig, isFields, listOf } from '../../../schemas/index.ts'
import type { ReadFailure } from './objects.ts'

export interface ClusterAccess {
  /** Sends a GET. Resolves with any status, and rejects when the API server is unreachable. */
  readonly get: (resource: ResourcePath, query?: Readonly<Record<string, string>>) => Promise<ClusterResponse>
  /** Like `get`, but returns only metadata, so that the values of a Secret are not sent. */
  readonly getMetadata: (resource: ResourcePath) => Promise<ClusterResponse>
  /** The context's name. */
  readonly context: string
  /** The context's namespace. */
  readonly namespace: string | undefined
  /** The API server's URL, as shown in messages. */
  readonly server: string
}

export interface ClusterChoice {
  /** Name of the context, or true for the current one. */
  readonly context: string | true
  /** Prefix of error messages, such as `--context`. */
  readonly subject: string
  /** Error message when there is no kubeconfig. */
  readonly absent?: string
  /** Path of the kubeconfig file. Default: from KUBECONFIG, or in the home folder. */
  readonly kubeconfig?: string | undefined
}

/** Throws INVALID_CONFIG when the kubeconfig cannot be read or does not contain the context. */
export async function clusterAccess({
  context: wanted,
  subject,
  absent,
  kubeconfig,
}: ClusterChoice): Promise<ClusterAccess> {
  const { loadApiServer } = await import('../../../hooks/index.ts')
  const { KubeConfig, apiPath, apiServer } = await loadApiServer()
  const config = new KubeConfig()
  try {
    if (kubeconfig === undefined) config.loadFromDefault()
    else config.loadFromFile(kubeconfig)
  } catch (cause) {
    throw invalidConfig(
      `${subject}: cannot read the kubeconfig${kubeconfig === undefined ? '' : ` ${kubeconfig}`}`,
      cause,
    )
  }
  const known = config.getContexts().map(({ name }) => name)
  if (wanted !== true) {
    if (!known.includes(wanted))
      throw invalidConfig(`${subject}: no context ${wanted}; expected one of ${known.join(', ')}`)
    config.setCurrentContext(wanted)
  }
  const context = config.getCurrentContext()
  const server = config.getCurrentCluster()?.server ?? ''
  // The Kubernetes client's default when there is no kubeconfig.
  if (context === 'loaded-context' && server === 'http://localhost:8080')
    throw invalidConfig(`${subject}: ${absent ?? 'there is no kubeconfig'}`)
  if (server === '') throw invalidConfig(`${subject}: the context ${context} has no cluster`)
  const api = apiServer(config)
  return {
    get: (resource, query) => api({ path: apiPath(resource, query) }),
    getMetadata: (resource) => api({ path: apiPath(resource), only: 'metadata' }),
    context,
    namespace: config.getContextObject(context)?.namespace,
    server,
  }
}

/** `status` is undefined when there was no response. */
export function failureOf(status: number | undefined): ReadFailure {
  if (status === 404) return 'absent'
  if (status === 403) return 'forbidden'
  return status === 401 ? 'unauthorized' : 'unreachable'
}

/** A page of a list, or the status of a failed request. The status is undefined when there was no response. */
export type ObjectPage =
  | { readonly items: readonly Fields[] }
  | { readonly items?: undefined; readonly status: number | undefined }

const pageSize = 500

/** Yields a list in pages, so that memory use is bounded. Stops after the first page that fails. */
export async function* pagesOf(
  get: ClusterAccess['get'],
  list: ResourcePath,
  query: Readonly<Record<string, string>> = {},
): AsyncGenerator<ObjectPage> {
  let token = ''
  do {
    const page = { ...query, limit: String(pageSize), ...(token !== '' && { continue: token }) }
    const answer = await get(list, page).catch(() => undefined)
    const next = fieldsOf(answer?.body['metadata'])['continue']
    const expired = answer?.status === 410 && typeof next === 'string' && next !== token
    if (!expired && (answer === undefined || answer.status >= 300)) {
      yield { status: answer?.status }
      return
    }
    // The continuation of an expired list returns the current objects. Source: Kubernetes API concepts, "410 Gone".
    if (!expired) yield { items: listOf(answer?.body['items']).filter(isFields) }
    token = typeof next === 'string' ? next : ''
  } while (token !== '')
}
