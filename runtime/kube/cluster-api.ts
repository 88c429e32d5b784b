/**
 * Minimal Kubernetes API client for a pod, limited to the few requests that Gatehouse pods make. The address and the
 * account come from files that the kubelet mounts into each container.
 *
 * `makeFetch` limits the response size. Requests are not retried.
 * Source: Kubernetes, "Accessing the Kubernetes API from a Pod".
 */
import { readFileSync } from 'node:fs'
import { type Fields, invalidConfig, jsonFields } from '../../schemas/index.ts'
import { directOnly, type Fetch, makeFetch } from '../net/index.ts'

type Environment = Readonly<Record<string, string | undefined>>

/** Access to the API server from within a pod. */
export interface ClusterApi {
  readonly baseUrl: string
  /** Trust anchors for the server, in PEM format. Defaults to the system roots. */
  readonly ca?: string | undefined
  /** Returns the token. Called for each request, because the token rotates. */
  readonly token: () => string
  readonly fetch: Fetch & { close(): Promise<void> }
}

const serviceAccount = '/var/run/secrets/kubernetes.io/serviceaccount'
const timeoutMs = 10_000

/**
 * Returns access to the API server; undefined outside a cluster. `account` is the folder with the certificate and the
 * token. Throws INVALID_CONFIG when the account is not mounted.
 */
export function clusterApi(env: Environment, account = serviceAccount): ClusterApi | undefined {
  const host = env['KUBERNETES_SERVICE_HOST']
  const port = env['KUBERNETES_SERVICE_PORT'] ?? '443'
  if (host === undefined || host === '') return undefined
  const ca = mounted(account, 'ca.crt')
  return {
    baseUrl: `https://${host.includes(':') ? `[${host}]` : host}:${port}`,
    ca,
    token: () => mounted(account, 'token').trim(),
    fetch: makeFetch({ ca, timeoutMs, proxy: directOnly }),
  }
}

function mounted(account: string, name: string): string {
  const path = `${account}/${name}`
  try {
    return readFileSync(path, 'utf8')
  } catch (cause) {
    throw invalidConfig(
      `${path} cannot be read: this pod needs its service account token (automountServiceAccountToken)`,
      cause,
    )
  }
}

export interface ApiAnswer {
  readonly status: number
  /** The object or the error Status; empty when the body is not a JSON object. */
  readonly body: Fields
}

/** Sends a GET request. Rejects when the API server is unreachable. */
export function getObject(api: ClusterApi, path: string): Promise<ApiAnswer> {
  return send(api, path, { method: 'GET' })
}

/** Merges `patch` into an object (RFC 7386). Rejects when the API server is unreachable. */
export function mergeInto(api: ClusterApi, path: string, patch: unknown): Promise<ApiAnswer> {
  return send(api, path, {
    method: 'PATCH',
    headers: { 'content-type': 'application/merge-patch+json' },
    body: JSON.stringify(patch),
  })
}

/** Returns `/api/v1/namespaces/…`, with escaped segments. */
export function corePath(namespace: string, resource: string, name: string): string {
  return `/api/v1/namespaces/${encodeURIComponent(namespace)}/${resource}/${encodeURIComponent(name)}`
}

interface Sent {
  readonly method: string
  readonly headers?: Record<string, string>
  readonly body?: string
}

async function send(api: ClusterApi, path: string, { headers, ...rest }: Sent): Promise<ApiAnswer> {
  const response = await api.fetch(api.baseUrl + path, {
    ...rest,
    headers: { authorization: `Bearer ${api.token()}`, accept: 'application/json', ...headers },
  })
  const text = await response.text()
  return { status: response.status, body: jsonFields(text) ?? {} }
}
