/**
 * Cross-application access: exchanges the user's ID token for an identity assertion at the provider (RFC 8693), then
 * the assertion for an access token at the target (RFC 7523).
 *
 * Health checks use the client's own credentials at the target.
 * Source: docs/reference/specification/virtual-server.md (type xaa); draft-ietf-oauth-identity-assertion-authz-grant.
 */
import {
  clientCredentialsGrant,
  jwtBearerGrant,
  requestIdentityAssertion,
  type TokenProofOptions,
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
import { tokenTypes } from '../subject.ts'
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
          obtain: (idToken, dpop) => flow.obtain(idToken, dpop),
        },
        obtainOwn: flow.canActAlone ? (dpop) => flow.obtainOwn(dpop) : undefined,
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

  async obtain(idToken: string, dpop: TokenProofOptions | undefined): Promise<TokenSet> {
    const { idpTokenUrl = '', targetAudience, targetResource, scopes } = this.#block
    const assertion = await requestIdentityAssertion({
      server: typedServer(undefined, idpTokenUrl),
      client: this.#atIdp.current(idpTokenUrl),
      fetch: this.#parts.fetch,
      now: this.#parts.now,
      idToken,
      audience: targetAudience,
      resource: targetResource,
      scopes,
    })
    // The assertion is at most a few minutes old, so another login does not help when the target rejects it.
    return this.#atTargetServer(jwtBearerGrant({ ...this.#target(), dpop, assertion }))
  }

  obtainOwn(dpop: TokenProofOptions | undefined): Promise<TokenSet> {
    const { scopes, targetResource: resource } = this.#block
    return this.#atTargetServer(clientCredentialsGrant({ ...this.#target(), dpop, scopes, resource }))
  }

  async #atTargetServer(pending: Promise<TokenSet>): Promise<TokenSet> {
    try {
      return await pending
    } catch (error) {
      throw credentialFailure(error, { subject: false, settings: this.#atTarget.settings })
    }
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
