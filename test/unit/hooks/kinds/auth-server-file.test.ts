/**
 * The file of an embedded authorization server, from the block of the resource.
 */
import t from 'tap'
import { PodNeeds } from '../../../../hooks/runtime-config/needs.ts'
import { authServerPart, authServerSecrets } from '../../../../hooks/runtime-config/auth-server.ts'
import { type MCPExternalAuthConfig, validateRuntime, withDefaults } from '../../../../schemas/index.ts'
import { proves } from '../../../helpers/proves.ts'
import { embedded, resource } from '../../../hooks/resources.ts'

function fileOf(more: object, target: object = {}) {
  const manifest = resource('MCPExternalAuthConfig', 'x', {
    type: 'embeddedAuthServer',
    embeddedAuthServer: embedded(more),
  })
  const config = (withDefaults(manifest) as unknown as MCPExternalAuthConfig).spec.embeddedAuthServer
  if (!config) throw new Error('no block')
  const needs = new PodNeeds()
  const file = authServerPart(config, {
    kind: 'MCPServer',
    namespace: 'team',
    name: 'files',
    resource: 'https://files.example.com',
    scopes: [],
    primaryUpstreamProvider: undefined,
    clusterDomain: 'cluster.local',
    behindEdge: false,
    clientCertificates: false,
    needs,
    ...target,
  })
  return { file, needs, secrets: authServerSecrets(config) }
}

const acl = { aclUserConfig: { passwordSecretRef: { name: 'redis', key: 'password' } } }
const redis = (settings: object) => ({ storage: { type: 'redis', redis: { ...acl, ...settings } } })

t.test(
  'storage: the Sentinel Service becomes an address, by default in the same namespace and on port 26379',
  async (t) => {
    proves(
      '2.storage.redis.sentinelConfig.sentinelService.namespace',
      '2.storage.redis.sentinelConfig.sentinelService.port',
    )
    const sentinels = (sentinelService: object) => {
      const { file } = fileOf(redis({ sentinelConfig: { masterName: 'm', sentinelService } }))
      t.strictSame(validateRuntime('authserver', file).violations, [])
      return file.storage?.redis?.sentinelConfig?.sentinelAddrs
    }
    t.strictSame(sentinels({ name: 's' }), ['s.team.svc.cluster.local:26379'])
    t.strictSame(sentinels({ name: 's', namespace: 'data', port: 5000 }), ['s.data.svc.cluster.local:5000'])
  },
)

t.test(
  'storage: TLS authorities of nodes and Sentinels are mounted separately, and credentials are named',
  async (t) => {
    const ca = { caCertSecretRef: { name: 'ca', key: 'pem' } }
    const { file, needs, secrets } = fileOf(
      redis({
        sentinelConfig: { masterName: 'm', sentinelAddrs: ['a:1', 'b:2'] },
        tls: ca,
        sentinelTls: { ...ca, insecureSkipVerify: true },
        aclUserConfig: { ...acl.aclUserConfig, usernameSecretRef: { name: 'redis', key: 'user' } },
        dialTimeout: '1s',
      }),
    )
    t.match(file.storage, {
      type: 'redis',
      redis: {
        sentinelConfig: { sentinelAddrs: ['a:1', 'b:2'] },
        usernameEnv: 'GATEHOUSE_AUTH_SERVER_REDIS_USERNAME',
        passwordEnv: 'GATEHOUSE_AUTH_SERVER_REDIS_PASSWORD',
        keyPrefix: 'gatehouse:authserver:mcpserver:team:files:',
        tls: { caCertFile: '/etc/gatehouse/authserver/redis-tls/master/ca.crt', insecureSkipVerify: false },
        sentinelTls: {
          caCertFile: '/etc/gatehouse/authserver/redis-tls/sentinel/ca.crt',
          insecureSkipVerify: true,
        },
        dialTimeout: '1s',
      },
    })
    t.ok(needs.mounts.some(({ mountPath }) => mountPath === '/etc/gatehouse/authserver/redis-tls/sentinel'))
    t.strictSame([...new Set(secrets.map(({ name }) => name))].sort(), ['ca', 'keys', 'redis', 'tokens'])
  },
)

t.test('storage: in a cluster, the key prefix is a hash tag', async (t) => {
  const prefixOf = (settings: object): string | undefined =>
    fileOf(redis(settings)).file.storage?.redis?.keyPrefix
  t.equal(prefixOf({ addr: 'a:1', clusterMode: true }), '{gatehouse:authserver:mcpserver:team:files:}')
  t.equal(prefixOf({ addr: 'a:1' }), 'gatehouse:authserver:mcpserver:team:files:')
})

t.test(
  'upstreams: secrets and initial access tokens come from variables, and the callback is below the resource URL',
  async (t) => {
    const dcr = {
      name: 'dyn.corp'.replace('.', '-'),
      type: 'oauth2',
      oauth2Config: {
        authorizationEndpoint: 'https://a.example.com',
        tokenEndpoint: 'https://t.example.com',
        scopes: ['x'],
        dcrConfig: {
          registrationEndpoint: 'https://r.example.com',
          initialAccessTokenRef: { name: 'tokens', key: 'client' },
        },
      },
    }
    const { file } = fileOf({ upstreamProviders: [dcr] }, { resource: 'https://files.example.com/mcp' })
    t.match(file.upstreamProviders?.[0], {
      oauth2Config: {
        redirectUri: 'https://files.example.com/mcp/oauth/callback',
        dcrConfig: { initialAccessTokenEnv: 'GATEHOUSE_UPSTREAM_DCR_INITIAL_ACCESS_TOKEN_DYN_CORP' },
      },
    })
    t.strictSame(validateRuntime('authserver', file).violations, [])
    const own = fileOf({
      upstreamProviders: [
        {
          name: 'c',
          type: 'oidc',
          oidcConfig: {
            issuerUrl: 'https://c.example.com',
            clientId: 'x',
            redirectUri: 'https://own.example.com/cb',
          },
        },
      ],
    })
    t.match(own.file.upstreamProviders?.[0], { oidcConfig: { redirectUri: 'https://own.example.com/cb' } })
  },
)
