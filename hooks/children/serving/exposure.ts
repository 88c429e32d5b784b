/**
 * The way from outside to a Service: an HTTPRoute at a Gateway, or an Ingress. Both end TLS for the host name.
 *
 * Lists are written out with every field that the API server would fill in, for they are compared whole.
 * Source: Gateway API v1, Kubernetes networking/v1.
 */
import type { Exposure } from '../../../schemas/index.ts'
import type { KubeObject } from '../../base/kube.ts'
import { type ChildMeta, childMeta } from '../objects.ts'

/** `https://<hostname>`, where clients are. */
export function publicOrigin({ hostname }: Exposure): string {
  return `https://${hostname}`
}

export interface RouteTarget {
  readonly port: number
  /** The Service serves HTTPS. */
  readonly secure: boolean
}

/** Under the name of the Service that it leads to. */
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
          // Event streams and tool calls have time limits of their own.
          timeouts: { request: '0s' },
        },
      ],
    },
  }
}

/** ingress-nginx cuts a response after 60 seconds without data, and collects it before it passes it on. Others ignore these. */
const streaming = {
  'nginx.ingress.kubernetes.io/proxy-buffering': 'off',
  'nginx.ingress.kubernetes.io/proxy-read-timeout': '3600',
  'nginx.ingress.kubernetes.io/proxy-send-timeout': '3600',
} as const

/** Others than ingress-nginx take it from `appProtocol` of the Service, or have settings of their own. */
const toHttps = { 'nginx.ingress.kubernetes.io/backend-protocol': 'HTTPS' } as const

function ingress(meta: ChildMeta, { hostname, ingress: own }: Exposure, secure: boolean): KubeObject {
  const { className, tlsSecretName, annotations } = own ?? {}
  return {
    apiVersion: 'networking.k8s.io/v1',
    kind: 'Ingress',
    metadata: childMeta({
      ...meta,
      annotations: { ...meta.annotations, ...streaming, ...(secure && toHttps), ...annotations },
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
