/**
 * Cross-application access: exchanges the user's ID token for an identity assertion at the provider (RFC 8693), then
 * the assertion for an access token at the target (RFC 7523).
 *
 * Checks the assertion's kind, type, audience and resource, but not its signature: the assertion came from the provider
 * over TLS, and the target verifies it. Health checks use the client's own credentials at the target.
 * Source: docs/reference/specification/virtual-server.md (type xaa); draft-ietf-oauth-identity-assertion-authz-grant.
 */
import { decodeJwt, decodeProtectedHeader } from 'jose'
import {
  clientCredentialsGrant,
  jwtBearerGrant,
  OAuthClientError,
  tokenExchangeGrant,
  type TokenSet,
  typedServer,
} from '../../oauth/index.ts'
import { CredentialCache } from '../cache.ts'
import { clientViolations, type ClientSettings, GatewayClient } from '../client.ts'
import {
  providerOf,
  providerViolations,
  type StrategyModule,
  type StrategyParts,
  urlViolations,
  type XaaBlock,
} from '../config.ts'
import { credentialFailure } from '../failure.ts'
import { idJag, tokenTypes } from '../subject.ts'
import { TokenStrategy } from '../token-strategy.ts'

export const xaa: StrategyModule = {
  problems({ xaa: block }, parts) {
    if (!block) return [{ path: 'xaa', message: 'is required' }]
    return [
      ...urlViolations('xaa.idpTokenUrl', block.idpTokenUrl),
      ...urlViolations('xaa.targetTokenUrl', block.targetTokenUrl, block.insecureTargetTokenUrl),
      ...(block.targetAudience ? [] : [{ path: 'xaa.targetAudience', message: 'is required' }]),
      ...clientViolations(idpClient(block), 'xaa.idp', parts),
      ...clientViolations(targetClient(block), 'xaa.target', parts),
      ...(block.subjectTokenType !== undefined && block.subjectTokenType !== tokenTypes.id_token
        ? [{ path: 'xaa.subjectTokenType', message: 'must be the URN of id_token' }]
        : []),
      ...providerViolations('xaa.subjectProviderName', block.subjectProviderName, parts),
    ]
  },
  make({ xaa: block = {} }, parts, field) {
    const flow = new CrossAppFlow(block, parts, field)
    return new TokenStrategy(
      {
        type: 'xaa',
        settings: flow.settings,
        fingerprint: () => flow.fingerprint(),
        forCaller: {
          subject: {
            provider: providerOf(block.subjectProviderName, parts),
            tokenType: tokenTypes.id_token,
          },
          obtain: (idToken) => flow.obtain(idToken),
        },
        obtainOwn: flow.canActAlone ? () => flow.obtainOwn() : undefined,
      },
      parts,
    )
  },
}

function idpClient(block: XaaBlock): ClientSettings {
  return {
    clientId: block.idpClientId,
    clientSecret: block.idpClientSecret,
    clientSecretEnv: block.idpClientSecretEnv,
    clientAuth: block.idpClientAuth,
  }
}

function targetClient(block: XaaBlock): ClientSettings {
  return {
    clientId: block.targetClientId,
    clientSecret: block.targetClientSecret,
    clientSecretEnv: block.targetClientSecretEnv,
    clientAuth: block.targetClientAuth,
  }
}

class CrossAppFlow {
  readonly #block: XaaBlock
  readonly #parts: StrategyParts
  readonly #atIdp: GatewayClient
  readonly #atTarget: GatewayClient

  constructor(block: XaaBlock, parts: StrategyParts, field: string) {
    this.#block = block
    this.#parts = parts
    this.#atIdp = new GatewayClient(idpClient(block), `${field}.xaa.idp`, parts)
    this.#atTarget = new GatewayClient(targetClient(block), `${field}.xaa.target`, parts)
  }

  get canActAlone(): boolean {
    return this.#atTarget.canActAlone
  }

  /** Settings of the client at the identity provider. `obtain` reports errors from the target itself. */
  get settings(): string {
    return this.#atIdp.settings
  }

  fingerprint(): string {
    return CredentialCache.key(
      JSON.stringify(this.#block),
      this.#atIdp.fingerprint(),
      this.#atTarget.fingerprint(),
    )
  }

  async obtain(idToken: string): Promise<TokenSet> {
    const assertion = await this.#assertion(idToken)
    try {
      return await jwtBearerGrant({ ...this.#target(), assertion })
    } catch (error) {
      // The assertion is at most a few minutes old, so another login does not help when the target rejects it.
      throw credentialFailure(error, { subject: false, settings: this.#atTarget.settings })
    }
  }

  async obtainOwn(): Promise<TokenSet> {
    const { scopes, targetResource } = this.#block
    try {
      return await clientCredentialsGrant({ ...this.#target(), scopes, resource: targetResource })
    } catch (error) {
      throw credentialFailure(error, { subject: false, settings: this.#atTarget.settings })
    }
  }

  async #assertion(idToken: string): Promise<string> {
    const { idpTokenUrl = '', targetAudience, targetResource, scopes } = this.#block
    const tokens = await tokenExchangeGrant({
      server: typedServer(undefined, idpTokenUrl),
      client: this.#atIdp.current(idpTokenUrl),
      fetch: this.#parts.fetch,
      now: this.#parts.now,
      subjectToken: idToken,
      subjectTokenType: tokenTypes.id_token,
      requestedTokenType: idJag,
      audience: targetAudience,
      resource: targetResource,
      scopes,
      tokenTypes: ['n_a'],
    })
    checkAssertion(tokens, targetAudience, targetResource)
    return tokens.accessToken
  }

  #target() {
    const { targetTokenUrl = '', targetAudience, insecureTargetTokenUrl } = this.#block
    return {
      server: typedServer(undefined, targetTokenUrl),
      // The audience of the identity assertion is the target's issuer.
      client: this.#atTarget.current(targetAudience),
      fetch: insecureTargetTokenUrl ? this.#parts.httpFetch : this.#parts.fetch,
      now: this.#parts.now,
    }
  }
}

/** Throws OAuthClientError `protocol` when the provider issued a different kind of token than requested. */
function checkAssertion(tokens: TokenSet, audience: string | undefined, resource: string | undefined): void {
  if (tokens.issuedTokenType !== idJag || tokens.tokenType !== 'n_a') {
    throw new OAuthClientError(
      'protocol',
      'the token from the identity provider is not an identity assertion',
    )
  }
  const { typ, aud, granted } = readAssertion(tokens.accessToken)
  if (typ !== 'oauth-id-jag+jwt') {
    throw new OAuthClientError('protocol', 'the type of the identity assertion is not oauth-id-jag+jwt')
  }
  if (aud.length !== 1 || aud[0] !== audience) {
    throw new OAuthClientError('protocol', 'the identity assertion has the wrong audience')
  }
  if (resource !== undefined && !granted.includes(resource)) {
    throw new OAuthClientError('protocol', 'the identity assertion does not grant the requested resource')
  }
}

function readAssertion(assertion: string): {
  typ: unknown
  aud: readonly unknown[]
  granted: readonly unknown[]
} {
  try {
    const { typ } = decodeProtectedHeader(assertion)
    const { aud, resource } = decodeJwt(assertion)
    return { typ: typ?.toLowerCase(), aud: toArray(aud), granted: toArray(resource) }
  } catch (error) {
    throw new OAuthClientError('protocol', 'the identity assertion is not a JWT', { cause: error })
  }
}

function toArray(value: unknown): readonly unknown[] {
  if (value === undefined) return []
  return Array.isArray(value) ? value : [value]
}
