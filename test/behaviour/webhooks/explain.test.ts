/** `gatehouse explain` lists the webhooks for a call, in their order, by original names. */
import t from 'tap'
import { explain } from '../../../runtime/tools/explain/index.ts'
import { snapshotOffline } from '../../../runtime/vmcp/index.ts'
import { vmcpConfig } from '../../helpers/vmcp/vmcp.ts'

const url = 'https://hook.example.com'

t.test('matching webhooks are listed, and none is called', async (t) => {
  const config = vmcpConfig(
    { github: 'http://127.0.0.1:9/mcp' },
    {
      webhooks: {
        mutating: [
          { name: 'mask', url, phase: 'response' },
          { name: 'other', url, match: { backends: ['jira'] } },
        ],
        validating: [
          { name: 'dlp', url, match: { tools: ['search'] } },
          { name: 'trial', url, mode: 'audit', match: { backends: ['github'] } },
          { name: 'lax', url, failurePolicy: 'ignore', match: { methods: ['prompts/get'] } },
        ],
      },
    },
  )
  const tools = [JSON.stringify({ name: 'search', inputSchema: { type: 'object' } })]
  const asked = { action: 'call_tool', name: 'github_search', claims: { sub: 'ada' } } as const
  const { steps, decision } = await explain(
    snapshotOffline(config, { github: { tools, health: 'healthy' } }),
    asked,
  )
  t.equal(decision, 'allow')
  t.match(
    steps.find(({ stage }) => stage === 'webhook'),
    {
      verdict: 'note',
      details: [
        'request: dlp (validating)',
        'request: trial (validating, audit only)',
        'response: mask (mutating)',
      ],
    },
  )
})
