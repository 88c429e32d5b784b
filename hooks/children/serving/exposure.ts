/**
 * Exposes a Service to clients outside the cluster through an HTTPRoute or an Ingress. Both kinds of route terminate
 * TLS for the host name.
 *
 * Lists contain every field that the API server would default, because each list is compared as a whole.
 * Source: Gateway API v1, Kubernetes networking/v1.
 */
import type { Exposure } from '../../../schemas/index.ts'
import type { KubeObject } from '../../base/kube.ts'
import { type ChildMeta, childMeta } from '../objects.ts'

/** Returns `https://<hostname>`, the origin that clients use. */
export function publicOrigin({ hostname }: Exposure): string {
  return `https://${hostname}`
}

export interface RouteTarget {
  readonly port: number
  /** True when the Service serves HTTPS. */
  readonly secure: boolean
}

/** Builds a route named after its Service. */
export function route(meta: ChildMeta, exposure: Exposure, { port, secure }: RouteTarget): KubeObject {
  return exposure.gateway ? httpRoute(meta, exposure, port) : ingress(meta, exposure, secure)
}

function httpRoute(meta: ChildMeta, { hostname, gateway }: Exposure, port: number): KubeObject {
  return {
    apiVersion: 'gateway.networking.k8s.io/v1',
    kind: 'HTTPRoute',
    metadata: childMeta(meta),
    spec: {
      parentRefs: [{ group: 'gateway.networking.k8s.io', kind: 'Gateway', ...gateway }],
      hostnames: [hostname],
      rules: [
        {
          matches: [{ path: { type: 'PathPrefix', value: '/' } }],
          backendRefs: [{ group: '', kind: 'Service', name: meta.name, port, weight: 1 }],
          // The route has no time limit, because event streams and tool calls have their own limits.
          timeouts: { request: '0s' },
        },
      ],
    },
  }
}

/**
 * By default, ingress-nginx buffers responses and ends them after 60 seconds without data. Other controllers ignore
 * these annotations.
 */
const streamingAnnotations = {
  'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
  'nginx.ingress.kubernetes.io/proxy-read-timeout': '3600',
  'nginx.ingress.kubernetes.io/proxy-send-timeout': '3600',
} as const

/** Sets the protocol for ingress-nginx. Other controllers use the Service's `appProtocol` or their own settings. */
const httpsAnnotations = { 'nginx.ingress.kubernetes.io/backend-protocol': 'HTTPS' } as const

function ingress(meta: ChildMeta, { hostname, ingress: own }: Exposure, secure: boolean): KubeObject {
  const { className, tlsSecretName, annotations } = own ?? {}
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: childMeta({
      ...meta,
      annotations: {
        ...meta.annotations,
        ...streamingAnnotations,
        ...(secure && httpsAnnotations),
        ...annotations,
      },
    }),
    spec: {
      ...(className !== undefined && { ingressClassName: className }),
      tls: [{ hosts: [hostname], ...(tlsSecretName !== undefined && { secretName: tlsSecretName }) }],
      rules: [
        {
          host: hostname,
          http: {
            paths: [
              {
                path: '/',
                pathType: 'Prefix',
                backend: { service: { name: meta.name, port: { name: 'http' } } },
              },
            ],
          },
        },
      ],
    },
  }
}
