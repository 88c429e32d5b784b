/** Clients without a user at a real provider, and a proxy that gets its tokens with one of them. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { decodeJwt, decodeProtectedHeader } from 'jose'
import { type ProxyInput, resolveProxyConfig } from '../../../runtime/config/index.ts'
import { silentLog } from '../../../runtime/net/index.ts'
import { runProxy } from '../../../runtime/proxy/index.ts'
import type { TestProviderOptions } from '../authserver/oidc-provider.ts'
import { startWorld, type World } from './login-rig.ts'
import { json, rpc } from './rig.ts'

export const machineSecret = 'machine-s3cret'

const dir = mkdtempSync(join(tmpdir(), 'machine-'))
/** Writes a file and returns its path. */
export function fileWith(name: string, text: string): string {
  const path = join(dir, name)
  writeFileSync(path, text)
  return path
}

const ec = (): KeyObject => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const keys = {
  first: ec(),
  second: ec(),
  unknown: ec(),
  rsa: generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey,
}

/** Returns the file contents of a private key: PEM, or a JWK with the name as its key id. */
export function keyText(name: keyof typeof keys, format: 'pem' | 'jwk' = 'jwk'): string {
  return format === 'pem'
    ? keys[name].export({ type: 'pkcs8', format: 'pem' }).toString()
    : JSON.stringify({ ...keys[name].export({ format: 'jwk' }), kid: name })
}

function publicJwk(name: keyof typeof keys): object {
  const { kty, crv, x, y, n, e } = keys[name].export({ format: 'jwk' })
  return { kty, crv, x, y, n, e, kid: name, use: 'sig' }
}

const grant = { grant_types: ['client_credentials'], redirect_uris: [], response_types: [] }
const byKey = { ...grant, token_endpoint_auth_method: 'private_key_jwt' }

/** Tokens contain the key id of the client's assertion as `kid`. */
export const machineProvider: TestProviderOptions = {
  clients: [
    { ...grant, client_id: 'job', client_secret: machineSecret },
    {
      ...byKey,
      client_id: 'signer',
      token_endpoint_auth_signing_alg: 'ES256',
      jwks: { keys: [publicJwk('first'), publicJwk('second')] },
    },
    {
      ...byKey,
      client_id: 'rsa',
      token_endpoint_auth_signing_alg: 'PS256',
      jwks: { keys: [publicJwk('rsa')] },
    },
  ],
  configuration: {
    enabledJWA: { clientAuthSigningAlgValues: ['ES256', 'PS256'] },
    extraTokenClaims(ctx: { oidc: { params?: Record<string, unknown> } }) {
      const assertion = ctx.oidc.params?.['client_assertion']
      return typeof assertion === 'string' ? { kid: decodeProtectedHeader(assertion).kid } : {}
    },
  },
}

/** A provider with these clients, and a target that accepts only its tokens. */
export function startMachineWorld(options: TestProviderOptions = {}): Promise<World> {
  return startWorld({ ...machineProvider, ...options })
}

export async function startMachine(world: World, input: ProxyInput, env: Record<string, string> = {}) {
  const config = resolveProxyConfig(
    'demo',
    { targetUri: world.target.url, remoteAuth: true, remoteAuthGrant: 'client_credentials', ...input },
    env,
  )
  const lines: string[] = []
  const proxy = await runProxy(config, { log: silentLog, notify: (line) => void lines.push(line) })
  proxy.ready.catch(() => {})
  const call = () => fetch(`${proxy.url}/mcp`, { method: 'POST', headers: json, body: rpc(1) })
  return {
    proxy,
    /** Lines for the terminal. */
    lines,
    call,
    /** Makes a call and returns the claims of the token that the target received. */
    async claims() {
      const response = await call()
      const text = await response.text()
      if (!text.startsWith('hello ')) throw new Error(`status ${response.status}: ${text}`)
      return decodeJwt(text.slice('hello '.length))
    },
  }
}

/** Number of token requests at the provider. */
export function tokenRequests({ idp }: World): number {
  return idp.requests.filter((path) => path === '/token').length
}
