/** Links between spans of different requests, and resource attributes of the server, as a collector receives them. */
import t, { type Test } from 'tap'
import { startFixture } from '../../helpers/mcp/fixture-server/index.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { type CollectedSpan, startCollector } from '../../helpers/otlp.ts'
import { bareNames, startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const server = 2
const able = { elicitation: {}, sampling: {}, roots: {} }
const accepted = { action: 'accept', content: { username: 'ada', email: 'ada@example.com' } }

async function start(
  t: Test,
  env: Record<string, string> = {},
  customAttributes: Record<string, string> = {},
) {
  const [collector, fixture] = await Promise.all([startCollector(), startFixture({ era: 'session' })])
  const telemetry = {
    endpoint: collector.url,
    tracingEnabled: true,
    samplingRate: '1.0',
    customAttributes,
  }
  const aggregation = bareNames('fixture')
  const vmcp = await startTestVmcp({ fixture: fixture.url }, { aggregation, telemetry }, { env })
  t.teardown(() => Promise.all([vmcp.close(), fixture.close(), collector.close()]))
  return {
    url: vmcp.url,
    async spans(): Promise<CollectedSpan[]> {
      await vmcp.close()
      return collector.spans().filter(({ kind }) => kind === server)
    },
  }
}

t.test('a parked call: each later request of the call is linked to the first one', async (t) => {
  const { url, spans } = await start(t)
  const call = { name: 'test_two_questions', arguments: {} }
  const ask = (more: object) => stateless(url, 'tools/call', { ...call, ...more }, { capabilities: able })
  const resume = async (before: Awaited<ReturnType<typeof ask>>) => {
    const result = before.response?.result as { inputRequests: object; requestState: string }
    const replies = Object.keys(result.inputRequests).map((key) => [key, accepted])
    return ask({ inputResponses: Object.fromEntries(replies), requestState: result.requestState })
  }
  const done = await resume(await resume(await ask({})))
  t.equal(done.response?.result?.['resultType'], 'complete')
  const [first, second, third, ...more] = (await spans()).filter(({ name }) => name.includes('two_questions'))
  t.same(more, [])
  t.notOk(first?.links?.length, 'the first request continues nothing')
  for (const span of [second, third]) {
    t.match(span?.links, [{ traceId: first?.traceId, spanId: first?.spanId }])
    t.not(span?.traceId, first?.traceId, 'each request has its own trace')
  }
})

t.test('a forged state causes no link', async (t) => {
  const { url, spans } = await start(t)
  await stateless(url, 'tools/call', {
    name: 'test_elicitation',
    arguments: {},
    requestState: 'x'.repeat(80),
  })
  for (const span of await spans()) t.notOk(span.links?.length)
})

t.test('the resource attributes contain instance, namespace and pod', async (t) => {
  const { url, spans } = await start(t, { VMCP_NAMESPACE: 'team', GATEHOUSE_POD_NAME: 'tools-7d9f-abcde' })
  await stateless(url, 'tools/list', {})
  const [span] = await spans()
  t.match(span?.resource, {
    'service.name': 'test-vmcp',
    'service.instance.id': /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-/,
    'k8s.namespace.name': 'team',
    'k8s.pod.name': 'tools-7d9f-abcde',
  })
})

t.test(
  'outside of a cluster there are no cluster attributes, and attributes in the settings take precedence',
  async (t) => {
    const { url, spans } = await start(t, { VMCP_NAMESPACE: 'local' }, { 'service.instance.id': 'mine' })
    await stateless(url, 'tools/list', {})
    const [span] = await spans()
    t.equal(span?.resource['service.instance.id'], 'mine')
    t.notOk(Object.keys(span?.resource ?? {}).some((name) => name.startsWith('k8s.')))
  },
)
