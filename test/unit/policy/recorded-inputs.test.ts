/**
 * The recorded input of a decision reproduces the decision, or none: values that cannot be recorded are not guessed.
 */
import t from 'tap'
import { makeCaller } from '../../../runtime/net/index.ts'
import { JsonObject } from '../../../runtime/mcp/index.ts'
import { policyMembers } from '../../../runtime/observe/audit/policy-line.ts'
import {
  type DecisionReport,
  makeAuthorizer,
  makeGate,
  replayDecisions,
} from '../../../runtime/policy/index.ts'
import type { AuthorizerParts } from '../../../runtime/policy/authorizer.ts'

const settings = { entitiesJson: '[]', groupEntityType: 'ServiceGroup' }

interface Asked {
  readonly policies: readonly string[]
  readonly args?: string
  readonly claims?: Readonly<Record<string, unknown>>
  readonly mode: 'read' | 'all'
  readonly provider?: string
  readonly upstreamTokens?: AuthorizerParts['upstreamTokens']
}

/** Decides, writes the line as in the audit log, and replays it with the same policies. */
async function replayed({ policies, args = '{}', claims = {}, mode, provider, upstreamTokens }: Asked) {
  const config = {
    ...settings,
    policies,
    ...(provider === undefined ? {} : { primaryUpstreamProvider: provider }),
  }
  const gate = makeGate(makeAuthorizer(config, { serverName: 'front', upstreamTokens }), {
    unknownMethods: 'refuse',
  })
  let report: DecisionReport | undefined
  const params = new JsonObject(Buffer.from(`{"name":"x","arguments":${args}}`))
  const caller = makeCaller({ issuer: 'i', subject: 'ada', claims: { sub: 'ada', ...claims } })
  await gate.check(caller, 'tools/call', params, { decided: (made) => (report = made) }).catch(() => {})
  const { policy } = policyMembers({
    id: 'x',
    decision: report?.allowed ? 'allow' : 'deny',
    reason: [],
    errors: [],
    missing: [],
    setDigest: '',
    shadow: undefined,
    origin: () => ({}),
    inputs: () => JSON.stringify(report?.inputs(mode)),
  })
  const line = JSON.stringify({ subjects: { user_id: 'ada' }, target: { name: 'x', type: 'tool' }, policy })
  const { flips, inconclusive, unchanged, lacking } = await replayDecisions(
    { ...config, serverName: 'front' },
    [line.replace('"reason":[]', '"reason":["p"]')],
  )
  return {
    allowed: report?.allowed,
    flips: flips.length,
    inconclusive,
    unchanged,
    lacking: lacking[0]?.[0],
    line,
  }
}

const same = { flips: 0, inconclusive: 0, unchanged: 1 }
const exact = ['permit(principal, action, resource) when { context.arg_n == 9007199254740993 };']
const notGiven = ['permit(principal, action, resource) unless { context has arg_n };']

t.test('whole numbers keep all their digits', async (t) => {
  for (const mode of ['read', 'all'] as const) {
    const found = await replayed({ policies: exact, args: '{"n":9007199254740993}', mode })
    t.match(found, { ...same, allowed: true }, mode)
    t.match(found.line, '9007199254740993')
  }
})

t.test('a value that cannot be recorded is unknown, not absent', async (t) => {
  const args = '{"n":99999999999999999999}'
  t.match(await replayed({ policies: notGiven, args, mode: 'read' }), {
    allowed: false,
    inconclusive: 1,
    lacking: 'arg_n',
  })
  t.match(await replayed({ policies: notGiven, args, mode: 'all' }), { ...same, allowed: false })
  const rounded = ['permit(principal, action, resource) when { context.arg_n.lessThan(decimal("1.0")) };']
  t.match(await replayed({ policies: rounded, args: '{"n":0.00001}', mode: 'read' }), {
    allowed: true,
    inconclusive: 1,
  })
})

const core = ['permit(principal, action, resource) when { principal.claim_team == "core" };']
const jwt = (claims: object) => `eyJ.${Buffer.from(JSON.stringify(claims)).toString('base64url')}.s`

t.test('the recorded claims are those that the policies read, from the upstream provider', async (t) => {
  for (const mode of ['read', 'all'] as const) {
    const upstreamTokens = { get: () => Promise.resolve({ accessToken: jwt({ sub: 'ada', team: 'core' }) }) }
    const asked = { policies: core, claims: { team: 'other' }, mode, provider: 'idp', upstreamTokens }
    t.match(await replayed(asked), { ...same, allowed: true }, mode)
    const none = { get: () => Promise.resolve(undefined) }
    const anybody = ['permit(principal, action, resource);']
    t.match(
      await replayed({ ...asked, policies: anybody, upstreamTokens: none }),
      { ...same, allowed: false },
      `${mode}: nothing is permitted without them`,
    )
  }
})

t.test('unreadable arguments are not treated as absent', async (t) => {
  const anybody = ['permit(principal, action == Action::"call_tool", resource);']
  const found = await replayed({ policies: anybody, args: '{"n":1,"n":2}', mode: 'all' })
  t.match(found, { ...same, allowed: true })
  const { lacking, inconclusive } = await replayDecisions(
    { ...settings, policies: notGiven, serverName: 'front' },
    [found.line],
  )
  t.equal(inconclusive, 1)
  t.equal(lacking[0]?.[0], 'arguments')
})

t.test('the hash of a set of policies changes with every setting that can change a decision', (t) => {
  const base = { ...settings, policies: core }
  const variants = [
    base,
    { ...base, groupClaimName: 'g' },
    { ...base, roleClaimName: 'g' },
    { ...base, primaryUpstreamProvider: 'g' },
    { ...base, groupEntityType: 'Team' },
    { ...base, entitiesJson: '[ ]' },
  ]
  const digests = variants.map((config) => makeAuthorizer(config, { serverName: 'front' }).digest)
  digests.push(makeAuthorizer(base, { serverName: 'back' }).digest)
  t.equal(new Set(digests).size, digests.length)
  t.equal(makeAuthorizer({ ...base, shadowPolicies: core }, { serverName: 'front' }).digest, digests[0])
  t.end()
})
