/** Temporary role credentials: the request to the token service, caching, failure classes, the signature. */
import t, { type Test } from 'tap'
import { makeOutgoing, type StrategyConfig } from '../../../runtime/outgoing/index.ts'
import type { OutgoingParts } from '../../../runtime/outgoing/registry.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'
import { testCaller, testRequest, testUpstream, tokenlessCaller } from '../../helpers/outgoing/outgoing.ts'
import { proves } from '../../helpers/proves.ts'

const role = (name: string) => `arn:aws:iam::123456789012:role/${name}`
const start = Date.parse('2026-01-01T00:00:00Z')

function credentials(id: string, expiresMs: number): PeerResponse {
  return {
    headers: { 'content-type': 'text/xml' },
    body: `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
      <SubjectFromWebIdentityToken>u</SubjectFromWebIdentityToken>
      <Credentials><AccessKeyId>${id}</AccessKeyId><SecretAccessKey>a&amp;b/+</SecretAccessKey>
      <SessionToken>st-${id}==</SessionToken><Expiration>${new Date(expiresMs).toISOString()}</Expiration></Credentials>
      </AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`,
  }
}

const failure = (status: number, code: string): PeerResponse => ({
  status,
  body: `<ErrorResponse><Error><Type>Sender</Type><Code>${code}</Code><Message>secret detail</Message></Error></ErrorResponse>`,
})

async function rig(
  t: Test,
  config: StrategyConfig['cloudSts'],
  response: (count: number) => PeerResponse,
  parts: OutgoingParts = {},
) {
  const clock = { now: start }
  const sts = await startLoopback(() => response(sts.seen.length))
  t.teardown(() => sts.close())
  const regions: string[] = []
  const stsEndpoint = (region: string) => {
    regions.push(region)
    return sts.url
  }
  const outgoing = makeOutgoing({ now: () => clock.now, stsEndpoint, ...parts })
  t.teardown(() => outgoing.close())
  const strategy = outgoing.strategy({ type: 'cloud_sts', cloudSts: { region: 'eu-west-1', ...config } })
  const send = async (caller: ReturnType<typeof testCaller> | undefined = testCaller(), change = {}) => {
    const request = testRequest(change)
    await strategy.apply(request, caller)
    return request
  }
  return { clock, sts, regions, strategy, send }
}

const always = (count: number) => credentials(`AK${count}`, start + 3_600_000)

await t.test('cloud_sts: an unsigned form with role, session name, token and duration', async (t) => {
  proves(
    '2.auth.cloudSts',
    '2.call.sts',
    '2.cloudSts.region',
    '2.cloudSts.sessionDuration',
    '2.cloudSts.sessionNameClaim',
    '2.cloudSts.subjectProviderName.incoming',
  )
  const { sts, regions, send } = await rig(t, { fallbackRoleArn: role('f') }, always)
  await send(testCaller({ subject: 'alice@corp' }))
  t.same(Object.fromEntries(sts.seen[0]?.form ?? []), {
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role('f'),
    RoleSessionName: 'alice@corp',
    WebIdentityToken: 'token-of-alice@corp',
    DurationSeconds: '3600',
  })
  t.equal(sts.seen[0]?.headers.authorization, undefined)
  t.same(regions, ['eu-west-1'])
})

await t.test(
  'cloud_sts: the request is signed for the configured service, with the session token',
  async (t) => {
    proves('2.cloudSts.service')
    const { send } = await rig(t, { fallbackRoleArn: role('f') }, always)
    const { headers } = await send(testCaller(), {
      headers: { authorization: 'Bearer client', 'content-type': 'application/json' },
    })
    t.match(
      headers['authorization'],
      /^AWS4-HMAC-SHA256 Credential=AK1\/20260101\/eu-west-1\/aws-mcp\/aws4_request, SignedHeaders=content-type;host;x-amz-date;x-amz-security-token, Signature=[0-9a-f]{64}$/,
    )
    t.equal(headers['x-amz-security-token'], 'st-AK1==')
    t.equal(headers['x-amz-date'], '20260101T000000Z')
    const other = await rig(t, { fallbackRoleArn: role('f'), service: 'execute-api' }, always)
    t.match((await other.send()).headers['authorization'], /\/execute-api\/aws4_request/)
  },
)

await t.test(
  'cloud_sts: the role comes from the mapping, and duration, session name and token are configurable',
  async (t) => {
    proves('2.cloudSts.subjectProviderName', '3.config.outgoingAuth.cloudSts.subjectProviderName')
    const upstream = testUpstream({ 'alice corp': { accessToken: 'up' } })
    const { sts, send } = await rig(
      t,
      {
        roleMappings: [{ roleArn: role('dev'), claim: 'dev' }],
        sessionDuration: 900,
        sessionNameClaim: 'email',
        subjectProviderName: 'corp',
      },
      always,
      { upstream },
    )
    await send(testCaller({ claims: { groups: ['dev'], email: 'a b@c' } }))
    const form = sts.seen[0]?.form
    t.equal(form?.get('RoleArn'), role('dev'))
    t.equal(form?.get('WebIdentityToken'), 'up')
    t.equal(form?.get('DurationSeconds'), '900')
    t.match(form?.get('RoleSessionName'), /^a-b@c-[0-9a-f]{16}$/)
    await t.rejects(send(testCaller({ claims: { groups: ['x'], email: 'e' } })), {
      code: 'BACKEND_ROLE_DENIED',
      status: 403,
    })
    await t.rejects(send(testCaller({ claims: { groups: ['dev'] } })), { code: 'SUBJECT_REFUSED' })
  },
)

await t.test(
  'cloud_sts: credentials are cached per caller and role until five minutes before they expire',
  async (t) => {
    const { clock, sts, send } = await rig(t, { fallbackRoleArn: role('f') }, always)
    await Promise.all([send(), send(), send()])
    t.equal(sts.seen.length, 1)
    await send(testCaller({ subject: 'bob' }))
    t.equal(sts.seen.length, 2)
    clock.now += 3_299_999
    const before = (await send()).headers['x-amz-date']
    t.equal(sts.seen.length, 2)
    t.equal(before, '20260101T005459Z', 'signed again each time')
    clock.now += 1
    await send()
    t.equal(sts.seen.length, 3)
  },
)

await t.test(
  'cloud_sts: requests without a caller get no credentials, and a caller without a token is rejected',
  async (t) => {
    const { sts, strategy, send } = await rig(t, { fallbackRoleArn: role('f') }, always)
    const request = testRequest({ headers: {} })
    await strategy.apply(request, undefined)
    t.same(request.headers, {})
    await t.rejects(send(tokenlessCaller()), { code: 'SUBJECT_REFUSED' })
    t.equal(sts.seen.length, 0)
  },
)

await t.test('cloud_sts: a payload beyond 10 MiB is not signed', async (t) => {
  const { send } = await rig(t, { fallbackRoleArn: role('f') }, always)
  await t.rejects(send(testCaller(), { body: Buffer.alloc(10_485_761) }), { code: 'REQUEST_TOO_LARGE' })
})

const failures: readonly (readonly [string, PeerResponse, object])[] = [
  ['an expired token', failure(400, 'ExpiredTokenException'), { code: 'SUBJECT_REFUSED' }],
  ['an invalid token', failure(400, 'InvalidIdentityToken'), { code: 'SUBJECT_REFUSED' }],
  ['a role that may not be assumed', failure(403, 'AccessDenied'), { code: 'BACKEND_ROLE_DENIED' }],
  ['throttling', failure(400, 'Throttling'), { code: 'BACKEND_AUTH_UNAVAILABLE' }],
  [
    'an outage',
    { status: 500, body: '' },
    { code: 'BACKEND_AUTH_UNAVAILABLE', headers: { 'retry-after': '5' } },
  ],
  ['a cut connection', 'cut', { code: 'BACKEND_AUTH_UNAVAILABLE' }],
  ['another refusal', failure(400, 'MalformedPolicyDocument'), { code: 'BACKEND_AUTH_FAILED' }],
  ['a response without credentials', { body: '<ok/>' }, { code: 'BACKEND_AUTH_FAILED' }],
  [
    'a response without an end',
    {
      body: '<AccessKeyId>a</AccessKeyId><SecretAccessKey>b</SecretAccessKey><SessionToken>c</SessionToken><Expiration>soon</Expiration>',
    },
    { code: 'BACKEND_AUTH_FAILED' },
  ],
]

for (const [title, response, expected] of failures) {
  await t.test(`cloud_sts: ${title}`, async (t) => {
    const { send } = await rig(t, { fallbackRoleArn: role('f') }, () => response)
    const error: unknown = await send().catch((thrown: unknown) => thrown)
    t.match(error, expected)
    t.notMatch(String(error), /secret detail/)
  })
}
