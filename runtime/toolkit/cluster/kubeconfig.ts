/** The Kubernetes API of a context in the kubeconfig. The Kubernetes client, and the hooks around it, are loaded only when this is used. */
import type { ClusterResponse, ResourcePath } from '../../../hooks/index.ts'
import { type Fields, fieldsOf, invalidConfig, isFields, listOf } from '../../../schemas/index.ts'
import type { ReadFailure } from './objects.ts'

export interface ClusterAccess {
  /** A GET. Resolves whatever the status; rejects when the API server cannot be reached. */
  readonly get: (resource: ResourcePath, query?: Readonly<Record<string, string>>) => Promise<ClusterResponse>
  /** The same without content: of a Secret, no value is sent. */
  readonly getMetadata: (resource: ResourcePath) => Promise<ClusterResponse>
  /** Name of the context. */
  readonly context: string
  /** The namespace that the context names. */
  readonly namespace: string | undefined
  /** URL of the API server, for messages. */
  readonly server: string
}

export interface WantedCluster {
  /** Name of the context, or true for the current one. */
  readonly context: string | true
  /** Starts the messages, such as `--context`. */
  readonly subject: string
  /** What to say when there is no kubeconfig. */
  readonly absent?: string
  /** Path of the kubeconfig; default: what KUBECONFIG names, or that of the home folder. */
  readonly kubeconfig?: string | undefined
}

/** Throws INVALID_CONFIG when the kubeconfig does not have it. */
export async function clusterAccess({
  context: wanted,
  subject,
  absent,
  kubeconfig,
}: WantedCluster): Promise<ClusterAccess> {
  const { loadApiServer } = await import('../../../hooks/index.ts')
  const { KubeConfig, apiPath, apiServer } = await loadApiServer()
  const config = new KubeConfig()
  try {
    if (kubeconfig === undefined) config.loadFromDefault()
    else config.loadFromFile(kubeconfig)
  } catch (cause) {
    throw invalidConfig(
      `${subject}: the kubeconfig${kubeconfig === undefined ? '' : ` ${kubeconfig}`} cannot be read`,
      cause,
    )
  }
  const known = config.getContexts().map(({ name }) => name)
  if (wanted !== true) {
    if (!known.includes(wanted))
      throw invalidConfig(`${subject}: no context ${wanted}; known: ${known.join(', ')}`)
    config.setCurrentContext(wanted)
  }
  const context = config.getCurrentContext()
  const server = config.getCurrentCluster()?.server ?? ''
  // What the client makes up when there is no kubeconfig at all.
  if (context === 'loaded-context' && server === 'http://localhost:8080')
    throw invalidConfig(`${subject}: ${absent ?? 'there is no kubeconfig'}`)
  if (server === '') throw invalidConfig(`${subject}: the context ${context} names no cluster`)
  const api = apiServer(config)
  return {
    get: (resource, query) => api({ path: apiPath(resource, query) }),
    getMetadata: (resource) => api({ path: apiPath(resource), only: 'metadata' }),
    context,
    namespace: config.getContextObject(context)?.namespace,
    server,
  }
}

/** `status`: undefined when there was no response. */
export function failureOf(status: number | undefined): ReadFailure {
  if (status === 404) return 'absent'
  if (status === 403) return 'forbidden'
  return status === 401 ? 'unauthorized' : 'unreachable'
}

/** A part of a list; without items the status that came in its place, which is undefined when nothing came. */
export type ObjectPage =
  | { readonly items: readonly Fields[] }
  | { readonly items?: undefined; readonly status: number | undefined }

const pageSize = 500

/** A list in pages, so that one of any length needs the memory of one page. Ends with the first page that fails. */
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
    // An expired list goes on with what is there now. Source: Kubernetes API concepts, "410 Gone".
    if (!expired) yield { items: listOf(answer?.body['items']).filter(isFields) }
    token = typeof next === 'string' ? next : ''
  } while (token !== '')
}
