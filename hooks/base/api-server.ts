/**
 * Requests to the API server of a kubeconfig, or of the pod's own cluster.
 *
 * The official client finds the cluster and presents the credentials; the few requests are made here, because its typed
 * calls bring a table of every Kubernetes type along (1.8 MB of script). Imported only when a cluster is spoken to.
 * Nothing is repeated, redirects are not followed.
 * Source: Kubernetes API concepts, "Resource URIs"; API conventions, "Patch operations".
 */
import { request as httpRequest, type IncomingMessage } from 'node:http'
import { request as httpsRequest, type RequestOptions } from 'node:https'
import { text } from 'node:stream/consumers'
import { KubeConfig } from '@kubernetes/client-node/dist/config.js'
import { type Fields, invalidConfig, jsonFields } from '../../schemas/index.ts'

export { KubeConfig }

export interface ClusterResponse {
  readonly status: number
  /** The object, or the Status that says why there is none. Empty when the body is no JSON object. */
  readonly body: Fields
}

export interface ClusterRequest {
  /** Default GET. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH'
  /** With its query. */
  readonly path: string
  readonly body?: unknown
  /** Of the body; default application/json. A patch names its kind here. */
  readonly contentType?: string
  /** Of what is read, only the metadata is sent: of a Secret, for example, no value. */
  readonly only?: 'metadata'
}

/** Rejects when the API server cannot be reached; resolves whatever the status. */
export type ApiServer = (request: ClusterRequest) => Promise<ClusterResponse>

export interface ResourcePath {
  /** Empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  /** Absent: cluster-scoped, or all namespaces. */
  readonly namespace?: string | undefined
  /** Absent: the list. */
  readonly name?: string | undefined
}

const timeoutMs = 60_000
/** With no other type to fall back to. Source: Kubernetes API concepts, "Metadata-only fetches". */
const metadataType = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'

/** The API server of the current context. Throws INVALID_CONFIG when the configuration names no cluster. */
export function apiServer(config: KubeConfig): ApiServer {
  const cluster = config.getCurrentCluster()
  if (!cluster) throw invalidConfig('the Kubernetes configuration names no cluster')
  const base = cluster.server.replace(/\/$/, '')
  return async ({ method = 'GET', path, body, contentType = 'application/json', only }) => {
    const headers: Record<string, string> = {}
    const options: RequestOptions = { method, headers, signal: AbortSignal.timeout(timeoutMs) }
    await config.applyToHTTPSOptions(options)
    // The client keeps an agent with the authority and certificate of its first request; Node's own goes by what is asked.
    if (!cluster.proxyUrl) delete options.agent
    const sent = body === undefined ? undefined : Buffer.from(JSON.stringify(body))
    headers['accept'] = only === 'metadata' ? metadataType : 'application/json'
    headers['user-agent'] = 'gatehouse'
    if (sent) {
      headers['content-type'] = contentType
      headers['content-length'] = String(sent.byteLength)
    }
    const response = await exchange(base + path, options, sent)
    return { status: response.statusCode ?? 0, body: jsonFields(await text(response)) ?? {} }
  }
}

/** `/apis/<group>/<version>/…`, the parts escaped, with the query where there is one. */
export function apiPath(resource: ResourcePath, query: Readonly<Record<string, string>> = {}): string {
  const { group, version, plural, namespace, name } = resource
  const parts = [
    ...(group === '' ? ['api', version] : ['apis', group, version]),
    ...(namespace === undefined ? [] : ['namespaces', namespace]),
    plural,
    ...(name === undefined ? [] : [name]),
  ]
  const search = new URLSearchParams(query).toString()
  return `/${parts.map(encodeURIComponent).join('/')}${search && `?${search}`}`
}

function exchange(
  url: string,
  options: RequestOptions,
  body: Uint8Array | undefined,
): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = (url.startsWith('http:') ? httpRequest : httpsRequest)(url, options, resolve)
    request.once('error', reject)
    request.end(body)
  })
}
