/** One server that accepts tokens from several issuers: real key sets over HTTP, tokens made with jose. */
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import t from 'tap'
import { makeAuthenticator } from '../../../runtime/incoming/index.ts'
import { localKeys } from '../../../runtime/oauth/index.ts'
import {
  configOf,
  type Oidc,
  refusal,
  serverOf,
  startIssuer,
  startThree,
} from '../../helpers/authserver/several-issuers.ts'
import { startLoopback } from '../../helpers/loopback.ts'

await t.test(
  '16 issuers: the iss claim selects the keys, and equal subjects are different callers',
  async (t) => {
    const issuers = await Promise.all(Array.from({ length: 16 }, () => startIssuer(t)))
    const [first, ...others] = issuers.map(configOf)
    if (!first) throw new Error('no issuer')
    const server = serverOf(t, { oidc: first, issuers: others })
    const callers = await Promise.all(
      issuers.map(async (issuer) => server.caller(await issuer.token('alice'))),
    )
    t.same(
      callers.map(({ subject }) => subject),
      ['alice', ...others.map(({ issuer }) => `${issuer}#alice`)],
    )
    t.same(
      callers.map(({ issuer }) => issuer),
      issuers.map(({ issuer }) => issuer),
    )
    t.equal(new Set(callers.map(({ key }) => key)).size, 16)
    t.equal(new Set(callers.map(({ claims }) => claims['sub'])).size, 16)
  },
)

await t.test('a token is checked only with the keys of the issuer that it names', async (t) => {
  const { a, b, c, first, second } = await startThree(t)
  const server = serverOf(t, { oidc: first, issuers: [second] })
  t.equal(await refusal(server, await c.token('alice')), 'INVALID_TOKEN issuer', 'unlisted')
  const spellings = [`${b.issuer}/`, b.issuer.toUpperCase(), ` ${b.issuer}`, '', null, 1, [b.issuer], {}]
  const { publicKey, privateKey } = await generateKeyPair('ES256')
  const known = { ...(await exportJWK(publicKey)), kid: 'k1', alg: 'ES256', use: 'sig' }
  const exact = await startLoopback(() => ({ body: { keys: [known] } }))
  t.teardown(() => exact.close())
  const sign = (iss: unknown) =>
    new SignJWT({ iss: iss as string, aud: a.audience, sub: 'alice' })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1' })
      .setExpirationTime('5m')
      .sign(privateKey)
  const own = serverOf(t, {
    oidc: first,
    issuers: [{ issuer: b.issuer, audience: b.audience, jwksUrl: `${exact.url}/keys` }],
  })
  t.match(await own.caller(await sign(b.issuer)), { subject: `${b.issuer}#alice` })
  for (const iss of spellings)
    t.equal(await refusal(own, await sign(iss)), 'INVALID_TOKEN issuer', JSON.stringify(iss))
  t.equal(
    await refusal(own, await sign(a.issuer)),
    'INVALID_TOKEN signature',
    'signed with the keys of another issuer',
  )
})

await t.test('audiences belong to their issuers', async (t) => {
  const { a, b, first, second } = await startThree(t)
  const server = serverOf(t, {
    oidc: { ...first, audience: 'for-a' },
    issuers: [{ ...second, audience: 'for-b' }],
  })
  t.match(await server.caller(await b.token('x')).catch((error: unknown) => error), {
    code: 'INVALID_TOKEN',
  })
  t.equal(await refusal(server, await a.token('x')), 'INVALID_TOKEN audience')
})

await t.test('prefixes: subjects, groups and roles of different issuers are never equal', async (t) => {
  const { a, b, c, first, second, third } = await startThree(t)
  const server = serverOf(t, {
    oidc: first,
    issuers: [
      { ...second, subjectPrefix: 'ci:', groupPrefix: 'ci/' },
      { ...third, groupPrefix: '' },
    ],
    groupClaims: ['realm_access.roles', 'https://example.com/teams'],
  })
  const claims = {
    groups: ['admins', ['nested'], 7],
    roles: 'admin',
    'cognito:groups': ['x'],
    realm_access: { roles: ['owner'], other: ['owner'] },
    'https://example.com/teams': ['red'],
    team: ['blue'],
  }
  t.match(await server.caller(await a.token('alice', claims)), { subject: 'alice', claims })
  const renamed = await server.caller(await b.token('alice', claims))
  t.match(renamed, { subject: 'ci:alice', displayName: 'ci:alice', key: `${b.issuer}\0ci:alice` })
  t.match(renamed.claims, {
    sub: 'ci:alice',
    groups: ['ci/admins', ['ci/nested'], 7],
    roles: 'ci/admin',
    'cognito:groups': ['ci/x'],
    realm_access: { roles: ['ci/owner'], other: ['owner'] },
    'https://example.com/teams': ['ci/red'],
    team: ['blue'],
  })
  t.match((await server.caller(await c.token('alice', claims))).claims, {
    groups: ['admins', ['nested'], 7],
  })
  const plain = serverOf(t, { oidc: first, issuers: [second] })
  t.match((await plain.caller(await b.token('alice', claims))).claims, { groups: [`${b.issuer}#admins`] })
})

await t.test('an unreachable issuer affects only its own tokens', async (t) => {
  const { a, b, c, first, second, third } = await startThree(t)
  const server = serverOf(t, { oidc: first, issuers: [second, third] })
  const tokens = await Promise.all([a.token('x'), b.token('x'), c.token('x')])
  await b.close()
  const results = await Promise.allSettled(tokens.map((token) => server.caller(token)))
  t.match(results, [
    { status: 'fulfilled' },
    { status: 'rejected', reason: { code: 'AUTH_UNAVAILABLE', headers: { 'retry-after': /\d/ } } },
    { status: 'fulfilled' },
  ])
  t.same(
    server.events.map(({ kind }) => kind),
    ['unavailable'],
    'the tokens of the other issuers do not end the outage',
  )
})

await t.test('opaque tokens go to the only issuer with introspection', async (t) => {
  const { b, c, first, second, third } = await startThree(t)
  let count = 0
  const endpoint = await startLoopback(() => {
    count += 1
    return { body: { active: true, sub: 'bot', aud: b.audience } }
  })
  t.teardown(() => endpoint.close())
  const introspectionUrl = `${endpoint.url}/i`
  const server = serverOf(t, { oidc: first, issuers: [{ ...second, introspectionUrl }, third] })
  t.match(await server.caller('opaque'), { issuer: b.issuer, subject: `${b.issuer}#bot` })
  t.match(await server.caller('a.b.c'), { subject: `${b.issuer}#bot` }, 'three parts without a JOSE header')
  t.match(await server.caller(await c.token('x')), { subject: `${c.issuer}#x` })
  t.equal(count, 2, 'a JWT is not introspected')
  const without = serverOf(t, { oidc: first, issuers: [second, third] })
  t.equal(await refusal(without, 'opaque'), 'INVALID_TOKEN malformed')
  t.equal(await refusal(without, 'x'.repeat(16_385)), 'INVALID_TOKEN malformed')
})

await t.test('conflicting issuers are reported together, with their fields', async (t) => {
  const base = { audience: 'me' }
  const at = (name: string) => ({ ...base, issuer: `https://${name}.example` })
  const problems = (config: Omit<Oidc, 'type'>): readonly string[] => {
    try {
      void makeAuthenticator({ type: 'oidc', ...config }).close()
      return []
    } catch (error) {
      return (error as Error).message.split('\n')
    }
  }
  t.same(problems({ oidc: at('a'), issuers: [at('b'), { ...at('c'), subjectPrefix: 'c:' }] }), [])
  t.match(problems({ oidc: at('a'), issuers: [at('b'), at('a'), at('b')] }), [
    /incomingAuth\.issuers\[1\]\.issuer: https:\/\/a\.example is listed twice/,
    /incomingAuth\.issuers\[2\]\.issuer: https:\/\/b\.example is listed twice/,
  ])
  const introspectionUrl = 'https://i.example/'
  t.match(problems({ oidc: { ...at('a'), introspectionUrl }, issuers: [{ ...at('b'), introspectionUrl }] }), [
    /incomingAuth\.issuers\[0\]\.introspectionUrl: only one issuer can have this setting/,
  ])
  for (const [one, other] of [
    ['x:', 'x:'],
    ['x:', 'x:y:'],
    ['x:y:', 'x:'],
    ['https://c.example#', undefined],
  ] as const)
    t.match(
      problems({
        oidc: at('a'),
        issuers: [
          { ...at('b'), subjectPrefix: one },
          { ...at('c'), subjectPrefix: other },
        ],
      }),
      [/incomingAuth\.issuers\[1\]\.subjectPrefix: conflicts with the prefix/],
    )
  const withGroups = (one: string | undefined, other: string | undefined): readonly string[] =>
    problems({
      oidc: at('a'),
      issuers: [
        { ...at('b'), groupPrefix: one },
        { ...at('c'), groupPrefix: other },
      ],
    })
  for (const [one, other] of [
    ['x/', 'x/y/'],
    ['x/y/', 'x/'],
    ['https://c.example#x', undefined],
  ] as const)
    t.match(withGroups(one, other), [/incomingAuth\.issuers\[1\]\.groupPrefix: conflicts with the prefix/])
  t.same([...withGroups('x/', 'x/'), ...withGroups('', 'x/'), ...withGroups('x/', '')], [])
  t.match(problems({ oidc: { jwksUrl: 'https://k.example/', ...base }, issuers: [at('b')] }), [
    /incomingAuth\.oidc\.issuer: is required when a server has several issuers/,
  ])
  t.match(problems({ oidc: at('a'), issuers: [{ ...at('b'), issuer: 'http://b.example' }] }), [
    /incomingAuth\.issuers\[0\]\.issuer: /,
  ])
})

await t.test('the protected-resource document lists advertised issuers, the first one first', async (t) => {
  const at = (name: string, { advertise }: { readonly advertise?: boolean } = {}) => ({
    issuer: `https://${name}.example`,
    audience: 'https://me.example/mcp',
    ...(advertise === undefined ? {} : { advertise }),
  })
  const listed = async (config: Omit<Oidc, 'type'>, parts: Parameters<typeof makeAuthenticator>[1] = {}) => {
    const { authenticator } = serverOf(t, config, parts)
    let body = ''
    const stage = authenticator.route({ path: '/.well-known/oauth-protected-resource' } as never)
    const res = { writeHead: () => res, setHeader: () => res, end: (text: unknown) => (body = String(text)) }
    await stage?.({ req: { method: 'GET', headers: {} }, res } as never)
    return (JSON.parse(body) as { authorization_servers?: unknown }).authorization_servers
  }
  t.same(
    await listed({
      oidc: at('a'),
      issuers: [at('b'), at('c', { advertise: true }), at('d', { advertise: false })],
    }),
    ['https://a.example', 'https://c.example'],
  )
  t.same(await listed({ oidc: at('a', { advertise: false }), issuers: [at('b', { advertise: true })] }), [
    'https://b.example',
  ])
  t.same(await listed({ oidc: at('a', { advertise: false }) }), undefined)
  const keys = localKeys(() => ({ keys: [] }))
  t.same(
    await listed({ oidc: at('a', { advertise: false }), issuers: [at('b', { advertise: true })] }, { keys }),
    ['https://a.example', 'https://b.example'],
    'the embedded authorization server is always listed',
  )
})

await t.test(
  'the embedded server next to other issuers: its keys and its grants concern only its callers',
  async (t) => {
    const { b, second } = await startThree(t)
    const { publicKey, privateKey } = await generateKeyPair('ES256')
    const set = { keys: [{ ...(await exportJWK(publicKey)), kid: 'own', alg: 'ES256', use: 'sig' }] }
    const issuer = 'https://me.example'
    const sign = (claims: Record<string, unknown>, typ: string | undefined = 'at+jwt') =>
      new SignJWT({ iss: issuer, aud: 'me', sub: 'alice', client_id: 'app', ...claims })
        .setProtectedHeader({ alg: 'ES256', kid: 'own', ...(typ === undefined ? {} : { typ }) })
        .setExpirationTime('5m')
        .sign(privateKey)
    const ended = new Set<unknown>()
    const asked: string[] = []
    const server = serverOf(
      t,
      { oidc: { issuer, audience: 'me' }, issuers: [second] },
      {
        keys: localKeys(() => set),
        isLive: async (caller) => {
          asked.push(caller.subject)
          return !ended.has(caller.claims['gid'])
        },
      },
    )
    const mine = await sign({ tsid: 's', gid: 'g' })
    t.match(await server.caller(mine), {
      subject: 'alice',
      facts: { kind: 'user', clientId: 'app', hasUpstreams: true },
    })
    const forged = await b.token('alice', {
      tsid: 's',
      gid: 'g',
      client_id: 'app',
      auth_method: 'private_key_jwt',
    })
    ended.add('g')
    t.match(await server.caller(forged), {
      subject: `${b.issuer}#alice`,
      facts: { kind: 'user', clientId: 'app', authMethod: undefined, hasUpstreams: false },
    })
    await t.rejects(server.caller(mine), { code: 'INVALID_TOKEN' })
    t.same(asked, ['alice', 'alice'])
    const machine = await sign({ sub: 'client:ci', client_id: 'ci', auth_method: 'private_key_jwt' })
    t.match(await server.caller(machine), {
      subject: 'client:ci',
      facts: { kind: 'machine', clientId: 'ci', authMethod: 'private_key_jwt', hasUpstreams: false },
    })
    t.equal(await refusal(server, await sign({ nonce: 'n' }, 'JWT')), 'INVALID_TOKEN type', 'its ID token')
    // The server exchanges tokens of an issuer that is also accepted directly.
    const exchanged = await sign({ sub: `${b.issuer}#job`, client_id: 'jwt-bearer:x' })
    t.match(await server.caller(exchanged), {
      issuer,
      subject: `${b.issuer}#job`,
      facts: { kind: 'machine', clientId: 'jwt-bearer:x', hasUpstreams: false },
    })
    const prefixed = serverOf(
      t,
      { oidc: { issuer, audience: 'me' }, issuers: [{ ...second, subjectPrefix: 'https://b.example#' }] },
      { keys: localKeys(() => set) },
    )
    const foreign = await sign({ sub: 'https://b.example#job', client_id: 'jwt-bearer:x' })
    t.equal(await refusal(prefixed, foreign), 'INVALID_TOKEN subject', 'another issuer has this prefix')
  },
)

await t.test('an issuer can be limited to one subject', async (t) => {
  const { a, b, first, second } = await startThree(t)
  const sub = 'system:serviceaccount:jobs:nightly'
  const server = serverOf(t, { oidc: first, issuers: [{ ...second, subject: sub }] })
  t.match(await server.caller(await b.token(sub, { 'kubernetes.io': { namespace: 'jobs' } })), {
    subject: `${b.issuer}#${sub}`,
    facts: { kind: 'machine' },
  })
  t.equal(await refusal(server, await b.token('system:serviceaccount:jobs:other')), 'INVALID_TOKEN subject')
  t.match(await server.caller(await a.token('alice')), { subject: 'alice' })
})
