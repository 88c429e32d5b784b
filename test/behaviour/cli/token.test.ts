/** `gatehouse token`: standard output contains only the token; errors name the next step and no secret. */
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose'
import t from 'tap'
import { printToken, type TokenFlags } from '../../../runtime/tools/token/token.ts'
import { runGatehouse } from '../../helpers/gatehouse.ts'
import { startLoopback } from '../../helpers/loopback.ts'
import {
  fileWith,
  keyText,
  machineSecret,
  startMachineWorld,
  tokenRequests,
} from '../../helpers/proxy/machine-rig.ts'
import { startUpstream } from '../../helpers/proxy/rig.ts'

t.setTimeout(400_000)

const world = await startMachineWorld()
t.teardown(() => world.close())
const server = ['--server', world.resource]
const secretFile = fileWith('token-secret', `${machineSecret}\n`)
const withSecret = ['--client-id', 'job', '--client-secret-file', secretFile]
const withKey = ['--client-id', 'signer', '--private-key-file', fileWith('token-key', keyText('first'))]

const token = (...args: readonly string[]) => runGatehouse(['token', ...args])

/** The claims of the only line of standard output. */
function claimsOf(stdout: string) {
  const [line = '', ...others] = stdout.split('\n')
  if (others.join('') !== '') throw new Error(`unexpected output: ${stdout}`)
  return decodeJwt(line)
}

await t.test('a secret, a key and a variable get a token that the server accepts', async (t) => {
  const found = await token(...server, ...withSecret)
  t.match(found, { code: 0, stderr: '' })
  t.match(claimsOf(found.stdout), { client_id: 'job', aud: world.resource, scope: 'read' })
  const jwks = createRemoteJWKSet(new URL(`${world.idp.issuer}/jwks`))
  await jwtVerify(found.stdout.trim(), jwks, { audience: world.resource })

  const signed = await token(...server, ...withKey, '--scope', 'read write', '--signing-alg', 'ES256')
  t.match(signed, { code: 0, stderr: '' })
  t.match(claimsOf(signed.stdout), { client_id: 'signer', kid: 'first', scope: 'read write' })

  const env = { ...process.env, GATEHOUSE_CLIENT_SECRET: machineSecret }
  const args = ['token', '--issuer', world.idp.issuer, '--client-id', 'job', '--resource', world.resource]
  const fromVariable = await runGatehouse(args, '', env)
  t.match(fromVariable, { code: 0, stderr: '' })
  t.match(claimsOf(fromVariable.stdout), { client_id: 'job', aud: world.resource })

  const piped = ['token', ...server, '--client-id', 'signer', '--private-key-file', '-']
  t.match(await runGatehouse(piped, keyText('second', 'pem')), { code: 0, stdout: /^eyJ/, stderr: '' })
})

await t.test('--json adds the lifetime, scope and issuer', async (t) => {
  const { code, stdout, stderr } = await token(...server, ...withSecret, '--scope', 'write', '--json')
  t.match({ code, stderr }, { code: 0, stderr: '' })
  const { access_token: accessToken, expires_in: life, ...others } = JSON.parse(stdout)
  t.same(others, { token_type: 'Bearer', scope: 'write', issuer: world.idp.issuer })
  t.match(decodeJwt(accessToken), { client_id: 'job' })
  t.ok(life > 500 && life <= 600, `${life} seconds`)
})

await t.test(
  "a rejection sets the exit code and prints the server's message and the next step",
  async (t) => {
    const wrong = fileWith('token-wrong', 'wr0ng')
    let error = ''
    const idp = await startLoopback(() => ({
      status: 400,
      body: { error, error_description: `${machineSecret} is not for you` },
    }))
    t.teardown(() => idp.close())
    const unknown = fileWith('token-unknown', keyText('unknown', 'pem'))
    const atFake = ['--token-url', `${idp.url}/token`, ...withSecret]
    const rows: readonly (readonly [readonly string[], string, RegExp])[] = [
      [
        [...server, '--client-id', 'job', '--client-secret-file', wrong],
        'invalid_client',
        /check --client-id/,
      ],
      [[...server, '--client-id', 'signer', '--private-key-file', unknown], 'invalid_client', /public key/],
      [atFake, 'unauthorized_client', /allow the client_credentials grant for this client/],
      [atFake, 'unsupported_grant_type', /enable the client_credentials grant/],
      [atFake, 'invalid_scope', /\(--scope\)/],
      [atFake, 'invalid_target', /\(--resource\)/],
    ]
    for (const [args, code, step] of rows) {
      error = code
      const found = await token(...args)
      t.match(found, { code: 3, stdout: '' }, code)
      const lines = found.stderr.trimEnd().split('\n')
      t.equal(lines[0], `Error: could not get a token: the token endpoint refused the request: ${code}`)
      t.match(lines[1], /^Message from the authorization server: /)
      t.match(lines[2], /^Next step: /)
      t.match(lines[2], step)
      t.equal(lines.length, 3)
      t.notMatch(found.stderr, /s3cret|wr0ng|eyJ|BEGIN/, 'no credential is shown')
    }
  },
)

await t.test('a redirect at the token endpoint is not a rejection', async (t) => {
  const moved = await startLoopback(() => ({ status: 307, headers: { location: '/elsewhere' } }))
  t.teardown(() => moved.close())
  const found = await token('--token-url', `${moved.url}/token`, ...withSecret)
  t.match(found, { code: 1, stdout: '', stderr: /status 307\nNext step: check --token-url/ })
  t.equal(moved.seen.length, 1, 'the secret is sent nowhere else')
})

await t.test('a server that is down, open or without metadata gets no token request', async (t) => {
  const open = await startUpstream((_seen, res) => res.end('{}'))
  const bare = await startUpstream((seen, res) => {
    if (seen.url === '/mcp') res.writeHead(401, { 'WWW-Authenticate': 'Bearer' }).end()
    else res.writeHead(404).end()
  })
  t.teardown(() => Promise.all([open.close(), bare.close()]))
  const before = tokenRequests(world)
  const rows: readonly (readonly [readonly string[], RegExp])[] = [
    [
      ['--server', 'http://127.0.0.1:1/mcp'],
      /the server does not respond\nNext step: .*gatehouse doctor http:/,
    ],
    [['--server', `${open.url}/mcp`], /the server requires no token\nNext step: call the server without/],
    [['--server', `${bare.url}/mcp`], /neither the server nor its challenge names an authorization server/],
    [['--issuer', 'http://127.0.0.1:1'], /could not be reached: .*\nNext step: try again when/],
  ]
  for (const [args, message] of rows) {
    const found = await token(...args, ...withSecret)
    t.match(found, { code: 1, stdout: '' }, args.join(' '))
    t.match(found.stderr, message)
  }
  t.equal(tokenRequests(world), before)
  t.notOk(bare.seen.some(({ method, url }) => method === 'POST' && url !== '/mcp' && url !== '/'))
})

await t.test('a token with control characters is not printed', async (t) => {
  const odd = await startLoopback(() => ({ body: { access_token: 'a\u001b[31m', token_type: 'Bearer' } }))
  t.teardown(() => odd.close())
  const found = await token('--token-url', `${odd.url}/token`, ...withSecret)
  t.match(found, { code: 1, stdout: '', stderr: /control or non-ASCII characters/ })
})

await t.test('completion lists the grants and algorithms', async (t) => {
  const complete = (...words: readonly string[]) => runGatehouse(['__complete', '--', ...words])
  t.match((await complete('proxy', '--remote-auth-grant', 'c')).stdout, /^client_credentials/)
  t.match((await complete('proxy', '--remote-auth-grant', 'j')).stdout, /^jwt-bearer/)
  t.match((await complete('token', '--signing-alg', 'PS')).stdout, /^PS256/)
})

await t.test('invalid usage exits with 2 and reports every error', async (t) => {
  const all = await token(
    ...['--issuer', 'http://id.example', '--token-url', 'nonsense', '--resource', 'x', '--scope', 'a"b'],
    ...['--client-secret-file', secretFile, '--private-key-file', secretFile],
    ...['--ca-file', '/absent'],
  )
  t.match(all, { code: 2, stdout: '' })
  t.same(all.stderr.trimEnd().split('\n'), [
    'Error: --issuer: must be https (http is allowed for loopback hosts)',
    '--token-url: must be an absolute URL',
    '--issuer, --token-url: set only one of them',
    '--resource: must be an absolute URI without a fragment',
    '--scope: must contain only printable ASCII characters, without quotes or backslashes',
    '--client-id: required, unless --assertion-file or --github is set',
    '--client-secret-file, --private-key-file: set only one of them',
    '--private-key-file: expected a private key as PEM or JWK',
    '--ca-file: cannot read /absent: file not found',
  ])
  for (const [args, message] of [
    [['--signing-alg', 'HS256'], /--signing-alg.*Allowed choices/],
    [['--client-secret', 's'], /unknown option '--client-secret'/],
  ] as const) {
    const found = await token(...server, ...withKey, ...args)
    t.match(found, { code: 2, stdout: '', stderr: message })
  }
})

await t.test('errors name contradictory and missing options', async (t) => {
  const clientSecretFile = secretFile
  const rows: readonly (readonly [Partial<TokenFlags>, RegExp])[] = [
    [{ clientSecretFile }, /^--server: required, unless --issuer or --token-url is set$/],
    [{ server: 'ftp://x', clientSecretFile }, /^--server: must be an http or https URL/],
    [{ server: 'https://u:p4ss@x.example', clientSecretFile }, /^--server: must be .* without credentials$/],
    [{ server: world.resource }, /^--client-secret-file: required, unless .*GATEHOUSE_CLIENT_SECRET is set$/],
    [
      { server: world.resource, clientSecretFile, signingAlg: 'ES256' },
      /^--signing-alg: requires --private-key-file$/,
    ],
  ]
  for (const [flags, message] of rows) {
    await t.rejects(printToken({ clientId: 'job', json: false, ...flags }), {
      code: 'INVALID_CONFIG',
      message,
    })
  }
  process.env['GATEHOUSE_CLIENT_SECRET'] = 's'
  t.teardown(() => void delete process.env['GATEHOUSE_CLIENT_SECRET'])
  const privateKeyFile = fileWith('token-key-2', keyText('first'))
  await t.rejects(printToken({ server: world.resource, clientId: 'job', json: false, privateKeyFile }), {
    message: 'GATEHOUSE_CLIENT_SECRET, --private-key-file: set only one of them',
  })
})
