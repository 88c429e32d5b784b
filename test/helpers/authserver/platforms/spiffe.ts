/** A SPIFFE trust domain: its bundle in a file, and JWT-SVIDs as SPIRE signs them. */
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import type { Test } from 'tap'
import type { DeclaredClientSettings } from '../../../../runtime/config/index.ts'
import { type Rig, tokenRequest } from '../authserver.ts'
import { declared, makeKey, type TestKey } from '../declared-client.ts'

export const spiffeAssertionType = 'urn:ietf:params:oauth:client-assertion-type:jwt-spiffe'

export interface TrustDomain {
  readonly name: string
  readonly bundlePath: string
  /** Signing key. */
  key: TestKey
  /** Writes the file with these keys, next to the key of an X.509 authority. */
  publish(...keys: readonly TestKey[]): void
  /** Signs a JWT-SVID that is valid for five minutes. Undefined members are omitted. */
  svid(
    rig: Pick<Rig, 'issuer' | 'now'>,
    path: string,
    claims?: Record<string, unknown>,
    header?: Record<string, unknown>,
  ): Promise<string>
}

export async function makeTrustDomain(
  t: Pick<Test, 'testdir'>,
  name = 'prod.example.com',
): Promise<TrustDomain> {
  return trustDomainIn(t.testdir({}), name)
}

export async function trustDomainIn(directory: string, name: string): Promise<TrustDomain> {
  const bundlePath = join(directory, `${name}.json`)
  const authority = await makeKey()
  const domain: TrustDomain = {
    name,
    bundlePath,
    key: await makeKey(),
    publish(...published) {
      const keys = [
        { ...authority.jwk, use: 'x509-svid' },
        ...published.map(({ jwk }) => ({ ...jwk, use: 'jwt-svid' })),
      ]
      writeFileSync(bundlePath, JSON.stringify({ keys, spiffe_sequence: 1, spiffe_refresh_hint: 300 }))
    },
    svid(rig, path, claims = {}, header = {}) {
      const nowSec = Math.floor(rig.now() / 1000)
      const sub = `spiffe://${name}${path}`
      const all = { sub, aud: [rig.issuer], iat: nowSec, exp: nowSec + 300, ...claims }
      const present = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined))
      const { alg, jwk, privateKey } = domain.key
      return new SignJWT(present)
        .setProtectedHeader({ alg, kid: jwk.kid, typ: 'JWT', ...header })
        .sign(privateKey)
    },
  }
  domain.publish(domain.key)
  return domain
}

/** Settings of a client with the defaults of the schema. */
export function workloadClient(
  { name, bundlePath }: Pick<TrustDomain, 'name' | 'bundlePath'>,
  clientId: string,
  path: string,
  resources: readonly string[],
  more: Partial<NonNullable<DeclaredClientSettings['spiffe']>> = {},
): DeclaredClientSettings {
  const principalPattern = `spiffe://${name}${path}`
  const spiffe = {
    trustDomain: name,
    bundlePath,
    principalPattern,
    maxAgeMs: 300_000,
    replay: 'once',
    ...more,
  } as const
  return declared(clientId, resources, { spiffe })
}

/** Requests a token with a JWT-SVID. */
export function requestWithSvid(
  rig: Pick<Rig, 'issuer'>,
  svid: string,
  parameters: Readonly<Record<string, string | undefined>> = {},
): Promise<Response> {
  return tokenRequest(rig, {
    grant_type: 'client_credentials',
    client_assertion_type: spiffeAssertionType,
    client_assertion: svid,
    ...parameters,
  })
}
