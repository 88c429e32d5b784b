/** Shadow policies: their decisions are recorded and counted, and no response depends on them. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { makeAuthorizer, makeGate } from '../../../runtime/policy/index.ts'
import { startRawBackend } from '../../helpers/mcp/raw-backend.ts'
import { stateless } from '../../helpers/mcp/wire.ts'
import { startTestVmcp } from '../../helpers/vmcp/vmcp.ts'

const policies = ['permit(principal, action, resource) unless { resource == Tool::"b_two" };']

async function recorded(t: Test, authz: Record<string, unknown>) {
  const logFile = join(t.testdir({}), 'audit.log')
  const backend = await startRawBackend({
    tools: () =>
      ['one', 'two', 'three'].map((name) => JSON.stringify({ name, inputSchema: { type: 'object' } })),
    responses: { 'tools/call': () => '{"content":[]}' },
  })
  const vmcp = await startTestVmcp(
    { b: backend.url },
    {
      incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies, ...authz } },
      audit: { enabled: true, logFile },
      telemetry: { enablePrometheusMetricsPath: true },
    },
  )
  t.teardown(() => backend.close())
  const refused: boolean[] = []
  for (const name of ['b_one', 'b_two', 'b_three'])
    refused.push(Boolean((await stateless(vmcp.url, 'tools/call', { name })).response?.error))
  const listed = (await stateless(vmcp.url, 'tools/list')).response?.result?.['tools'] as { name: string }[]
  const metrics = await (await fetch(new URL('/metrics', vmcp.url))).text()
  await vmcp.close()
  const shadows = readFileSync(logFile, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as { type: string; policy?: { shadow?: unknown } })
    .filter(({ type }) => type === 'mcp_tool_call')
    .map(({ policy }) => policy?.shadow)
  return { refused, listed: listed.map(({ name }) => name).sort(), shadows, metrics }
}

t.test('in addition: a forbid in shadow mode is recorded and rejects nothing', async (t) => {
  const { refused, listed, shadows, metrics } = await recorded(t, {
    shadowPolicies: ['forbid(principal, action, resource in BackendTool::"b/one");'],
  })
  t.same(refused, [false, true, false])
  t.same(listed, ['b_one', 'b_three'])
  t.same(shadows, [{ decision: 'deny', reason: ['shadowPolicies[0]'] }, undefined, undefined])
  for (const row of ['would_deny"} 1', 'same"} 2'])
    t.match(metrics, `gatehouse_authorization_shadow_decisions_total{server="test-vmcp",outcome="${row}`)
})

t.test('in place: a call that no shadow policy permits counts as a denial', async (t) => {
  const { refused, shadows, metrics } = await recorded(t, {
    shadowPolicies: ['permit(principal, action, resource == Tool::"b_two");'],
    shadowReplaces: true,
  })
  t.same(refused, [false, true, false])
  t.same(shadows, [
    { decision: 'deny', reason: [] },
    { decision: 'allow', reason: ['shadowPolicies[0]'] },
    { decision: 'deny', reason: [] },
  ])
  t.match(metrics, 'outcome="would_allow"} 1')
  t.match(metrics, 'outcome="would_deny"} 2')
})

t.test('invalid shadow policies are rejected at start-up, by name', async (t) => {
  await t.rejects(
    startTestVmcp(
      {},
      {
        incomingAuth: { type: 'anonymous', authz: { type: 'cedar', policies, shadowPolicies: ['permit('] } },
      },
    ),
    { code: 'INVALID_CONFIG', message: /shadowPolicies\[0\]/ },
  )
})

t.test('an engine failure of shadow policies changes no response', async (t) => {
  const authorizer = makeAuthorizer(
    { policies, entitiesJson: '[]', groupEntityType: 'ServiceGroup' },
    { serverName: 'front' },
  )
  const broken = {
    ...authorizer,
    digest: '',
    reads: new Set<string>(),
    subject: authorizer.subject.bind(authorizer),
    decide: authorizer.decide.bind(authorizer),
    evidence: authorizer.evidence.bind(authorizer),
    readsFacts: (): boolean => {
      throw new Error('broken')
    },
    verdict: (): never => {
      throw new Error('broken')
    },
  }
  const gate = makeGate(authorizer, { unknownMethods: 'pass', shadow: broken })
  const caller = makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada' } })
  const seen: unknown[] = []
  const call = (name: string) =>
    gate.check(caller, 'tools/call', new JsonObject(Buffer.from(JSON.stringify({ name }))), {
      decided: ({ allowed, shadow }) => seen.push([allowed, shadow?.allowed]),
    })
  await t.resolves(call('a'))
  await t.rejects(call('b_two'), { code: 'FORBIDDEN' })
  t.same(seen, [
    [true, false],
    [false, false],
  ])
})
