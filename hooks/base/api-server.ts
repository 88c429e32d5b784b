/**
 * Sends requests to the API server that a kubeconfig specifies, or to the API server of the pod's own cluster.
 *
 * The official client resolves the cluster and its credentials. This module sends the requests itself, because the
 * client's typed API bundles every Kubernetes type (1.8 MB of code). Import this module only if you need a cluster.
 * Requests are not retried and redirects are not followed.
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
  /**
   * The requested object, or a Status that explains why the object is missing. Empty when the body is not a JSON
   * object.
   */
  readonly body: Fields
}

export interface ClusterRequest {
  /** HTTP method. Defaults to GET. */
  readonly method?: 'GET' | 'POST' | 'PUT' | 'PATCH'
  /** Path of the request, including the query. */
  readonly path: string
  readonly body?: unknown
  /** Media type of the body; application/json by default. For a patch, the media type selects the patch type. */
  readonly contentType?: string
  /** Requests only the metadata, so that a Secret, for example, is read without its values. */
  readonly only?: 'metadata'
}

/** Resolves for any HTTP status. Rejects when the API server cannot be reached. */
export type ApiServer = (request: ClusterRequest) => Promise<ClusterResponse>

export interface ResourcePath {
  /** API group; empty for the core group. */
  readonly group: string
  readonly version: string
  readonly plural: string
  /** Namespace. Omit this field for cluster-scoped objects or for all namespaces. */
  readonly namespace?: string | undefined
  /** Name of the object. Omit this field to address the whole list. */
  readonly name?: string | undefined
}

const timeoutMs = 60_000
/** Asks for metadata only, without a fallback media type. Source: Kubernetes API concepts, "Metadata-only fetches". */
const metadataType = 'application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1'

/** Connects to the current context's API server. Throws INVALID_CONFIG when the kubeconfig has no cluster. */
export function apiServer(config: KubeConfig): ApiServer {
  const cluster = config.getCurrentCluster()
  if (!cluster) throw invalidConfig('the Kubernetes configuration has no cluster for its current context')
  const base = cluster.server.replace(/\/$/, '')
  return async ({ method = 'GET', path, body, contentType = 'application/json', only }) => {
    const headers: Record<string, string> = {}
    const options: RequestOptions = { method, headers, signal: AbortSignal.timeout(timeoutMs) }
    await config.applyToHTTPSOptions(options)
    // The Kubernetes client's agent keeps the CA and certificate of the first request. Node's default agent uses the CA
    // and certificate that each request sets.
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

/** Builds the path of a resource with escaped segments and an optional query. */
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
