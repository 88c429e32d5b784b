/**
 * An authorization server for the benchmark, with people who are signed in already: prints one line of JSON.
 *
 * Argument: `memory` or the address of a Redis. `POST /baseline` is the cheapest thing that could be called a token
 * endpoint: read a body, sign one ES256 JWT, answer.
 */
import { generateKeyPairSync, randomBytes, randomUUID } from 'node:crypto'
import { SignJWT } from 'jose'
import { type Exchange, readBody, sendJson } from '../../../runtime/net/index.ts'
import { makeMemoryStore, makeRedisStore } from '../../../runtime/store/index.ts'
import { login, redeem, registerClient, startAuthServer, tokensOf } from '../../helpers/authserver.ts'

const [kind = 'memory'] = process.argv.slice(2)
const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' })
const pem = pair.privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()
const hmac = randomBytes(32)

async function baseline(exchange: Exchange): Promise<void> {
  await readBody(exchange, 65_536)
  const token = await new SignJWT({ sub: 'alice', jti: randomUUID() })
    .setProtectedHeader({ alg: 'ES256', typ: 'at+jwt' })
    .setExpirationTime('1h')
    .sign(pair.privateKey)
  sendJson(exchange.res, 200, { access_token: token, token_type: 'Bearer' })
}

const rig = await startAuthServer(
  { teardown: () => {} },
  {
    store:
      kind === 'memory'
        ? makeMemoryStore()
        : makeRedisStore({ addr: kind, keyPrefix: `bench:${randomUUID()}:` }),
    config: { consent: false, secrets: () => ({ signingKeys: [pem], hmacSecrets: [hmac] }) },
    host: baseline,
  },
)
const clientId = await registerClient(rig)
const refreshTokens: string[] = []
for (let n = 0; n < 16; n++) {
  const done = await login(rig, { client_id: clientId, scope: 'email offline_access' })
  refreshTokens.push((await tokensOf(await redeem(rig, done))).refresh_token)
}
console.log(JSON.stringify({ issuer: rig.issuer, clientId, refreshTokens }))
