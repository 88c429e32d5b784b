/**
 * A Gateway for tests: terminates TLS for the host names of HTTPRoutes, and forwards each to the Service in its route,
 * with the BackendTLSPolicy of that Service if there is one. It reads both from the API server for each request, and
 * accepts or rejects routes with the messages of a Gateway controller.
 *
 * Supports only the fields in the routes of Gatehouse; other routes get a 501 response. Source: Gateway API v1,
 * HTTPRoute and BackendTLSPolicy.
 */
import { once } from 'node:events'
import { request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http'
import { createServer, request as httpsRequest } from 'node:https'
import { pipeline } from 'node:stream/promises'
import type { Test } from 'tap'
import { untyped } from '../untyped.ts'
import type { KubeApi } from './node/api.ts'

const group = '/apis/gateway.networking.k8s.io/v1'

/** Listens on loopback, port 443, of its own network namespace. */
export async function startGateway(
  t: Pick<Test, 'teardown'>,
  api: KubeApi,
  pair: { readonly cert: string; readonly key: string },
): Promise<void> {
  const server = createServer(pair, (request, response) => {
    answer(api, request, response).catch(() => response.destroy())
  })
  server.listen(443, '127.0.0.1')
  await once(server, 'listening')
  t.teardown(() => {
    server.closeAllConnections()
    server.close()
  })
}

async function answer(api: KubeApi, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const host = (request.headers.host ?? '').split(':')[0]
  const { items } = untyped(await api.send('GET', `${group}/httproutes`))
  const route = items.find(({ spec }: { spec: { hostnames: string[] } }) =>
    spec.hostnames.includes(host ?? ''),
  )
  if (!route) {
    response.writeHead(404).end()
    return
  }
  const [rule, ...others] = route.spec.rules
  const [backend, second] = rule.backendRefs
  const [{ path }] = rule.matches
  if (others.length > 0 || second || path.type !== 'PathPrefix' || path.value !== '/') {
    response.writeHead(501).end()
    return
  }
  const { namespace } = route.metadata
  const policy = await policyOf(api, namespace, backend.name)
  const name = `${backend.name}.${namespace}.svc.cluster.local`
  const target = { host: name, port: backend.port, method: request.method, path: request.url, agent: false }
  const headers = {
    ...request.headers,
    'x-forwarded-for': '203.0.113.7',
    'x-forwarded-proto': 'https',
    'x-forwarded-host': host,
  }
  const call = policy
    ? httpsRequest({ ...target, headers, ca: policy.ca, servername: policy.hostname })
    : httpRequest({ ...target, headers })
  call.on('response', (from) => {
    response.writeHead(from.statusCode ?? 502, from.headers)
    response.flushHeaders()
    pipeline(from, response).catch(() => {})
  })
  call.on('error', () => (response.headersSent ? response.destroy() : response.writeHead(502).end()))
  response.on('close', () => call.destroy())
  request.pipe(call)
}

/** TLS settings of a Service: the server name and the trusted authority. */
async function policyOf(
  api: KubeApi,
  namespace: string,
  service: string,
): Promise<{ readonly ca: string; readonly hostname: string } | undefined> {
  const { items } = untyped(await api.send('GET', `${group}/namespaces/${namespace}/backendtlspolicies`))
  const policy = items.find(({ spec }: { spec: { targetRefs: { name: string }[] } }) =>
    spec.targetRefs.some(({ name }) => name === service),
  )
  if (!policy) return undefined
  const { hostname, caCertificateRefs } = policy.spec.validation
  const path = `/api/v1/namespaces/${namespace}/configmaps/${caCertificateRefs[0].name}`
  return { ca: untyped(await api.send('GET', path)).data['ca.crt'], hostname }
}

/** Writes the status of a route as a Gateway controller does: accepted, or the reason for its rejection. */
export async function answerRoute(
  api: KubeApi,
  namespace: string,
  name: string,
  refusal?: { readonly reason: string; readonly message: string },
): Promise<void> {
  const path = `${group}/namespaces/${namespace}/httproutes/${name}`
  const { spec, metadata } = untyped(await api.send('GET', path))
  const [{ group: _group, kind: _kind, ...gateway }] = spec.parentRefs
  const condition = (type: string, good: string) => ({
    type,
    status: refusal ? 'False' : 'True',
    reason: refusal?.reason ?? good,
    message: refusal?.message ?? '',
    observedGeneration: metadata.generation,
    lastTransitionTime: new Date().toISOString(),
  })
  const conditions = [
    condition('Accepted', 'Accepted'),
    ...(refusal ? [] : [condition('ResolvedRefs', 'ResolvedRefs')]),
  ]
  const parents = [{ parentRef: gateway, controllerName: 'gatehouse.dev/test-gateway', conditions }]
  await api.send('PATCH', `${path}/status`, { status: { parents } })
}
