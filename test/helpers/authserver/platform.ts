/** A platform that signs tokens for its workloads: its key set, its discovery document, and policies that trust it. */
import { randomUUID } from 'node:crypto'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { SignJWT } from 'jose'
import type { Test } from 'tap'
import type { AssertionPolicySettings, TrustedIssuerSettings } from '../../../runtime/config/index.ts'
import { type Rig, tokenRequest } from './authserver.ts'
import { makeKey, type TestKey } from './declared-client.ts'

export const jwtBearerGrant = 'urn:ietf:params:oauth:grant-type:jwt-bearer'

export interface Platform {
  readonly issuer: string
  /** Paths of the requests, in order. */
  readonly requests: readonly string[]
  /** Value of the header Authorization in the latest request. */
  readonly authorization: () => string | undefined
  /** Signing key; tests can replace it to rotate the key. */
  key: TestKey
  /** Status of every response. */
  status: number
  /** Signs a token that is valid for a minute. Undefined members are omitted. */
  token(
    rig: Pick<Rig, 'issuer' | 'now'>,
    claims: Record<string, unknown>,
    header?: Record<string, unknown>,
  ): Promise<string>
}

export async function startPlatform(t: Pick<Test, 'teardown'>): Promise<Platform> {
  const requests: string[] = []
  let authorization: string | undefined
  const server = createServer((req, res) => {
    requests.push(req.url ?? '')
    authorization = req.headers.authorization
    const document = req.url?.startsWith('/.well-known/')
      ? { issuer: platform.issuer, jwks_uri: `${platform.issuer}/keys` }
      : { keys: [{ ...platform.key.jwk, alg: platform.key.alg, use: 'sig' }] }
    res.writeHead(platform.status, { 'content-type': 'application/json' }).end(JSON.stringify(document))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.teardown(() => {
    server.close()
    server.closeAllConnections()
  })
  const platform: Platform = {
    issuer: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    requests,
    authorization: () => authorization,
    key: await makeKey(),
    status: 200,
    token(rig, claims, header = {}) {
      const nowSec = Math.floor(rig.now() / 1000)
      const all = {
        iss: platform.issuer,
        aud: rig.issuer,
        iat: nowSec,
        exp: nowSec + 60,
        jti: randomUUID(),
        ...claims,
      }
      const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
      const { alg, jwk, privateKey } = platform.key
      return new SignJWT(present).setProtectedHeader({ alg, kid: jwk.kid, ...header }).sign(privateKey)
    },
  }
  return platform
}

export function trusted(
  { issuer }: Pick<Platform, 'issuer'>,
  name: string,
  more: Partial<TrustedIssuerSettings> = {},
): TrustedIssuerSettings {
  return { name, issuerUrl: issuer, allowPrivateIPs: false, ...more }
}

/** A policy with the defaults of the schema. */
export function policyFor(
  issuer: TrustedIssuerSettings,
  bindings: NonNullable<AssertionPolicySettings['bindings']>,
  more: Partial<AssertionPolicySettings> = {},
): AssertionPolicySettings {
  return { issuer, types: ['jwt_bearer'], maxAgeMs: 300_000, replay: 'once', bindings, ...more }
}

/** A policy for the identity assertions of every user of an identity provider. */
export function userPolicyFor(
  issuer: TrustedIssuerSettings,
  bindings?: AssertionPolicySettings['bindings'],
): AssertionPolicySettings {
  const types = ['id_jag'] as const
  return { issuer, types, maxAgeMs: 300_000, replay: 'once', ...(bindings && { bindings }) }
}

type PlatformClaims = Record<string, unknown> & { readonly sub: string }

/** Claims of a pod's token, as the API server signs them. */
export function serviceAccountClaims(namespace: string, name: string): PlatformClaims {
  return {
    sub: `system:serviceaccount:${namespace}:${name}`,
    'kubernetes.io': {
      namespace,
      pod: { name: `${name}-7k2xw`, uid: '1c4e8f2a-6f0b-4d7e-9a53-0d6c5c1f2b3a' },
      serviceaccount: { name, uid: '8b1d2c3e-4f50-4a61-b728-39a0b1c2d3e4' },
    },
  }
}

/** Claims of a job's token, as GitHub signs them. */
export function workflowClaims(more: Record<string, unknown> = {}): PlatformClaims {
  return {
    sub: 'repo:acme/deploy:environment:production',
    repository: 'acme/deploy',
    repository_id: '74',
    repository_owner_id: '65',
    environment: 'production',
    ref: 'refs/heads/main',
    job_workflow_ref: 'acme/deploy/.github/workflows/release.yml@refs/heads/main',
    ...more,
  }
}

export const idJagHeader = { typ: 'oauth-id-jag+jwt' }

/** Signs an identity assertion for a client. */
export function identityAssertion(
  idp: Platform,
  rig: Pick<Rig, 'issuer' | 'now'>,
  clientId: string,
  claims: Record<string, unknown> = {},
  header: Record<string, unknown> = {},
): Promise<string> {
  return idp.token(rig, { sub: 'alice', client_id: clientId, ...claims }, { ...idJagHeader, ...header })
}

/** Requests a token with an assertion, without a client. */
export function requestWithGrant(
  rig: Pick<Rig, 'issuer'>,
  assertion: string,
  parameters: Readonly<Record<string, string | undefined>> = {},
): Promise<Response> {
  return tokenRequest(rig, { grant_type: jwtBearerGrant, assertion, ...parameters })
}
