/** `gatehouse token` with a token from the platform: a file in a pod, or the OIDC token of a GitHub Actions job. */
import t, { type Test } from 'tap'
import { printToken, type TokenFlags } from '../../../runtime/tools/token/token.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { type PeerResponse, startLoopback } from '../../helpers/loopback.ts'
import { fileWith, keyText } from '../../helpers/proxy/machine-rig.ts'
import { startPlatformWorld, workloadToken } from '../../helpers/proxy/platform-rig.ts'

t.setTimeout(400_000)

const grantType = 'urn:ietf:params:oauth:grant-type:jwt-bearer'
const requestToken = 'gh-request-t0ken'
const jobUrl = 'ACTIONS_ID_TOKEN_REQUEST_URL'
const jobToken = 'ACTIONS_ID_TOKEN_REQUEST_TOKEN'

/** The OIDC endpoint of a job; by default, it issues a token for the requested audience. */
async function startJob(t: Test, response?: PeerResponse) {
  const github = await startLoopback(async ({ query }) => {
    const audience = query.get('audience') ?? 'https://github.com/owner'
    return response ?? { body: { value: await workloadToken(audience, { jti: 'job' }), count: 1 } }
  })
  t.teardown(() => github.close())
  const variables = { [jobUrl]: `${github.url}/token?api-version=2.0`, [jobToken]: requestToken }
  return { github, env: { ...process.env, ...variables } }
}

await t.test(
  'a pod gets a token with its service account token, from a file or standard input',
  async (t) => {
    const world = await startPlatformWorld(t)
    const assertion = await workloadToken(world.issuer, { jti: 'pod' })
    const args = ['token', '--server', world.server, '--assertion-file']
    const found = await runGatehouse([...args, fileWith('pod-token', `${assertion}\n`)])
    t.match(found, { code: 0, stdout: 'at-pod\n', stderr: '' })
    t.match(await runGatehouse([...args, '-'], assertion), { code: 0, stdout: 'at-pod\n', stderr: '' })
    t.same(Object.fromEntries(world.forms[0] ?? []), {
      grant_type: grantType,
      assertion,
      resource: world.server,
      scope: 'read',
    })
  },
)

await t.test('a client can be sent in addition, with or without a secret', async (t) => {
  const world = await startPlatformWorld(t)
  const file = fileWith('pod-client-token', await workloadToken(world.issuer, { jti: 'pod' }))
  const args = ['token', '--server', world.server, '--assertion-file', file, '--client-id', 'job']
  t.match(await runGatehouse(args), { code: 0, stdout: 'at-pod\n' })
  t.equal(world.forms[0]?.get('client_id'), 'job')
  const secret = ['--client-secret-file', fileWith('job-secret', 's3cret')]
  t.match(await runGatehouse([...args, ...secret]), { code: 0, stdout: 'at-pod\n' })
  t.equal(world.authorizations[1], `Basic ${Buffer.from('job:s3cret').toString('base64')}`)
})

await t.test('a GitHub Actions job gets a token; the audience is the issuer', async (t) => {
  const world = await startPlatformWorld(t)
  const { github, env } = await startJob(t)
  const found = await runGatehouse(['token', '--server', world.server, '--github'], '', env)
  t.match(found, { code: 0, stdout: 'at-job\n', stderr: '' })
  t.equal(github.seen.length, 1)
  t.match(github.seen[0], { method: 'GET', path: '/token' })
  t.same(Object.fromEntries(github.seen[0]?.query ?? []), { 'api-version': '2.0', audience: world.issuer })
  t.equal(github.seen[0]?.headers.authorization, `Bearer ${requestToken}`)

  const tokenUrl = `${world.issuer}/token`
  const typed = await runGatehouse(['token', '--token-url', tokenUrl, '--github', '--json'], '', env)
  t.match(typed, { code: 0, stderr: '' })
  t.match(JSON.parse(typed.stdout), { access_token: 'at-job', token_type: 'Bearer' })
  t.equal(github.seen[1]?.query.get('audience'), tokenUrl)

  // The server has a public address, so addresses from servers must be public. The runner's address may be private.
  const publicServer = ['token', '--server', 'https://1.1.1.1/mcp', '--token-url', tokenUrl, '--github']
  t.match(await runGatehouse(publicServer, '', env), { code: 0, stdout: 'at-job\n', stderr: '' })
})

await t.test('a job whose OIDC endpoint fails sends nothing to the authorization server', async (t) => {
  const world = await startPlatformWorld(t)
  const rows: readonly (readonly [PeerResponse, number, RegExp])[] = [
    [
      { status: 403, body: { message: requestToken } },
      1,
      /OIDC endpoint of GitHub Actions answered with status 403/,
    ],
    [{ status: 401, body: { error: 'invalid_client' } }, 1, /refused the request: invalid_client/],
    [{ status: 500 }, 1, /answered with status 500/],
    [{ body: {} }, 1, /sent no value/],
    [{ body: { value: 'not a jwt' } }, 1, /expected a signed JWT/],
    [{ status: 302, headers: { location: world.issuer } }, 1, /answered with status 302/],
  ]
  for (const [response, code, message] of rows) {
    const { env } = await startJob(t, response)
    const found = await runGatehouse(['token', '--server', world.server, '--github'], '', env)
    t.match(found, { code, stdout: '', stderr: message })
    t.match(found.stderr, /\nNext step: check that the job has the permission "id-token: write"/)
    t.notMatch(found.stderr, requestToken)
  }
  t.same(world.forms, [])
})

await t.test('a rejected platform token causes an error with the reason', async (t) => {
  const world = await startPlatformWorld(t)
  const other = await startPlatformWorld(t)
  const file = fileWith('rejected', await workloadToken(world.issuer, { jti: 'x' }))
  const args = ['token', '--server', world.server, '--assertion-file', file]
  for (const [error, step] of [
    ['invalid_grant', /trusts its issuer and subject/],
    ['unauthorized_client', /allow the jwt-bearer grant/],
    ['unsupported_grant_type', /enable the jwt-bearer grant/],
  ] as const) {
    world.response = { status: 400, body: { error, error_description: world.forms[0]?.get('assertion') } }
    const found = await runGatehouse(args)
    t.match(found, { code: 3, stdout: '', stderr: step }, error)
    t.notMatch(found.stderr, /eyJ/)
  }
  const wrong = await runGatehouse(['token', '--server', other.server, '--assertion-file', file])
  t.match(wrong, {
    code: 1,
    stdout: '',
    stderr: /the assertion's audience is not the MCP server's authorization server/,
  })
  t.same(other.forms, [])
})

await t.test('contradictory, missing and unusable options are reported together', async (t) => {
  const server = 'https://mcp.example/mcp'
  const good = fileWith('good', await workloadToken('https://id.example'))
  const secret = fileWith('secret', 's')
  const key = fileWith('key', keyText('first'))
  const set = (name: string, value: string | undefined): void => {
    if (value === undefined) delete process.env[name]
    else process.env[name] = value
  }
  const names = [jobUrl, jobToken, 'GATEHOUSE_CLIENT_SECRET'] as const
  t.teardown(() => {
    for (const name of names) set(name, undefined)
  })
  type Variables = Readonly<Partial<Record<(typeof names)[number], string>>>
  const job = { [jobUrl]: 'https://gh.example/token', [jobToken]: 'x' }
  const needed = `--github: requires the variables ${jobUrl} and ${jobToken}. GitHub sets them for a job with the permission "id-token: write"`
  const rows: readonly (readonly [Partial<TokenFlags>, Variables, readonly string[]])[] = [
    [{ assertionFile: good, github: true }, {}, ['--assertion-file, --github: set only one of them', needed]],
    [{ github: true }, { [jobUrl]: 'https://gh.example/token' }, [needed]],
    [{ github: true }, { [jobToken]: 'x' }, [needed]],
    [
      { github: true },
      { ...job, [jobUrl]: 'http://gh.example' },
      [`${jobUrl}: must be https (http is allowed for loopback hosts)`],
    ],
    [
      { github: true },
      { ...job, [jobToken]: 'a b' },
      [`${jobToken}: must consist of printable characters without spaces`],
    ],
    [{ assertionFile: secret }, {}, ['--assertion-file: expected a signed JWT']],
    [{ assertionFile: '/absent' }, {}, ['--assertion-file: cannot read /absent: file not found']],
    [{ assertionFile: good, clientSecretFile: secret }, {}, ['--client-secret-file: requires --client-id']],
    [{ assertionFile: good, privateKeyFile: key }, {}, ['--private-key-file: requires --client-id']],
    [
      { assertionFile: good },
      { GATEHOUSE_CLIENT_SECRET: 's' },
      ['GATEHOUSE_CLIENT_SECRET: requires --client-id'],
    ],
    [{ assertionFile: good, clientId: '' }, {}, ['--client-id: must not be empty']],
    [
      { assertionFile: good, clientId: 'job', clientSecretFile: secret, privateKeyFile: key },
      {},
      ['--client-secret-file, --private-key-file: set only one of them'],
    ],
    [
      { assertionFile: good, clientId: 'job', signingAlg: 'ES256' },
      {},
      ['--signing-alg: requires --private-key-file'],
    ],
  ]
  for (const [flags, variables, message] of rows) {
    for (const name of names) set(name, variables[name])
    await t.rejects(printToken({ server, json: false, ...flags }), {
      code: 'INVALID_CONFIG',
      message: message.join('\n'),
    })
  }
})
