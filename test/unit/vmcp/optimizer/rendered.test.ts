/** The runtime accepts the tool search settings that the hooks render, with the same meaning. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { parseVmcpConfig, vmcpEnvironment } from '../../../../runtime/config/index.ts'
import { checkStart } from '../../../../runtime/vmcp/index.ts'
import { searchSettings } from '../../../../runtime/vmcp/features/search/settings.ts'
import { resource, virtual, world } from '../../../hooks/resources.ts'

const env = { GATEHOUSE_EMBEDDING_API_KEY: 'k' }

/** Returns the settings that a running server derives from a resource. */
function settingsOf(spec: object, ...others: Parameters<typeof world>) {
  const hooks = world(virtual(spec), ...others).ready()
  const { data } = hooks.get('ConfigMap', 'door-vmcp-config') as { data?: Record<string, string> }
  const config = parseVmcpConfig(data?.['config.yaml'] ?? '')
  checkStart(config, { env })
  if (!config.optimizer) throw new Error('tool search is off')
  return searchSettings(config.optimizer, env)
}

t.test('rendered: a reference to an EmbeddingServer alone enables tool search with tei', async (t) => {
  const settings = settingsOf(
    { embeddingServerRef: { name: 'embed' } },
    resource('EmbeddingServer', 'embed', {}),
  )
  t.match(settings, {
    maxTools: 8,
    semanticRatio: 0.5,
    maxDistance: 1,
    service: {
      protocol: 'tei',
      url: 'http://embedding-embed.team.svc.cluster.local:8080',
      timeoutMs: 30_000,
      apiKey: undefined,
    },
  })
})

t.test(
  'rendered: the file contains the settings of the resource, and the address of the reference wins',
  async (t) => {
    const optimizer = {
      embeddingService: 'https://other.example.com',
      maxToolsToReturn: 5,
      hybridSearchSemanticRatio: '0.75',
      semanticDistanceThreshold: '0.4',
      embeddingServiceTimeout: '1m30s',
    }
    const settings = settingsOf(
      { embeddingServerRef: { name: 'embed' }, config: { optimizer } },
      resource('EmbeddingServer', 'embed', {}),
    )
    t.match(settings, {
      maxTools: 5,
      semanticRatio: 0.75,
      maxDistance: 0.4,
      service: { url: 'http://embedding-embed.team.svc.cluster.local:8080', timeoutMs: 90_000 },
    })
  },
)

t.test('rendered: compat with model and headers', async (t) => {
  const optimizer = {
    embeddingProvider: 'compat',
    embeddingService: 'https://models.example.com/v1',
    embeddingModel: 'small',
    embeddingHeaders: { 'X-Tenant': 'a' },
  }
  const { service } = settingsOf({ config: { optimizer } })
  t.match(service, {
    protocol: 'compat',
    url: 'https://models.example.com/v1',
    model: 'small',
    headers: { 'X-Tenant': 'a' },
  })
  t.equal(service?.apiKey?.reveal(), 'k')
  const alias = settingsOf({ config: { optimizer: { ...optimizer, embeddingProvider: 'openai' } } })
  t.same(alias.service, service, 'openai is another name for compat')
})

t.test('rendered: the key reaches the pod as the guide describes', async (t) => {
  const page = readFileSync(join(import.meta.dirname, '../../../../docs/guides/tool-search.md'), 'utf8')
  const [, shown = ''] = [...page.matchAll(/```yaml\n([^]*?)\n```/g)].map(([, text]) => text)
  const { spec } = parse(shown) as { spec: object }
  const optimizer = {
    embeddingProvider: 'compat',
    embeddingService: 'https://models.example.com/v1',
    embeddingModel: 'small',
  }
  const hooks = world(virtual({ ...spec, config: { optimizer } })).ready()
  const { template } = hooks.get('Deployment', 'vmcp-door')['spec'] as {
    template: { spec: { containers: { name: string; env: { name: string }[] }[] } }
  }
  const env = template.spec.containers.find(({ name }) => name === 'vmcp')?.env ?? []
  t.match(
    env.find(({ name }) => name === vmcpEnvironment.embeddingApiKey),
    { valueFrom: { secretKeyRef: { name: 'embedding-key', key: 'token' } } },
  )
})
