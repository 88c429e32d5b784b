/** The golden cases of MCPCatalogue. */
import { authzConfig, oidcConfig, resource, virtual, world } from '../../hooks/resources.ts'
import { servingCertificate } from '../../hooks/serving-certificate.ts'
import { secret, type Stored, type World } from '../../hooks/world.ts'

export const publication = { name: 'com.example/tools', description: 'Tickets and documents' }

export const catalogue = (spec: object = {}): Stored =>
  resource('MCPCatalogue', 'tools', { incomingAuth: { type: 'anonymous' }, ...spec })

/** Returns a virtual server with a name and labels. */
export function publishedServer(
  name: string,
  spec: object = {},
  metadata: Record<string, unknown> = {},
): Stored {
  const { spec: own } = virtual({ publish: publication, ...spec })
  return resource('VirtualMCPServer', name, own, metadata)
}

export const catalogueAuth = {
  type: 'oidc',
  oidcConfigRef: { name: 'login', audience: 'https://catalogue.example.com' },
  authzConfigRef: { name: 'policies' },
}

const requestOf = (w: World) => w.request('MCPCatalogue', 'tools')

export const catalogueCases = {
  'MCPCatalogue/anonymous': () =>
    requestOf(
      world(
        publishedServer('open', { publish: { ...publication, title: 'Tools', public: true } }),
        publishedServer('closed', { publish: { ...publication, name: 'com.example/closed' } }),
        virtual(),
        catalogue(),
      )
        .ready()
        .settle(),
    ),
  'MCPCatalogue/authenticated': () =>
    requestOf(
      world(
        oidcConfig(),
        authzConfig(),
        secret('catalogue-tls', servingCertificate),
        publishedServer('closed', {
          exposure: { hostname: 'tools.example.com', ingress: { className: 'nginx' } },
        }),
        catalogue({
          incomingAuth: catalogueAuth,
          replicas: 2,
          exposure: { hostname: 'catalogue.example.com', ingress: { tlsSecretName: 'catalogue-tls' } },
          podTemplateSpec: { spec: { priorityClassName: 'high' } },
        }),
      )
        .ready()
        .settle(),
    ),
  'MCPCatalogue/selected': () =>
    requestOf(
      world(
        publishedServer('a', { publish: { ...publication, public: true } }, { labels: { team: 'a' } }),
        publishedServer('b', { publish: { ...publication, name: 'com.example/b', public: true } }),
        catalogue({ selector: { matchLabels: { team: 'a' } } }),
      ).settle(),
    ),
  'MCPCatalogue/same-name': () =>
    requestOf(
      world(
        publishedServer('a', { publish: { ...publication, public: true } }),
        publishedServer('b', { publish: { ...publication, public: true } }),
        catalogue(),
      ).settle(),
    ),
  'MCPCatalogue/references-missing': () =>
    requestOf(world(catalogue({ incomingAuth: catalogueAuth })).settle()),
  'MCPCatalogue/references-removed': () =>
    requestOf(
      world(
        oidcConfig(),
        authzConfig(),
        publishedServer('closed'),
        catalogue({ incomingAuth: catalogueAuth }),
      )
        .ready()
        .settle()
        .remove('MCPOIDCConfig', 'login'),
    ),
  'MCPCatalogue/invalid': () =>
    requestOf(
      world(
        catalogue({ incomingAuth: { type: 'anonymous', authzConfigRef: { name: 'policies' } } }),
      ).settle(),
    ),
}
