/**
 * Obtains temporary role credentials with the caller's web identity token, and signs every request with them.
 *
 * Credentials are cached per role, session name and token until five minutes before they expire. Every request is
 * signed separately. Does not add credentials to requests without a caller.
 * Source: docs/reference/specification/external-auth.md#cloudSts (cloudSts),
 * docs/reference/specification/virtual-server.md.
 */
import { hash } from 'node:crypto'
import { GatehouseError, type Violation } from '../../../schemas/index.ts'
import type { Caller } from '../../net/index.ts'
import { CredentialCache, type UsedCredential } from '../cache.ts'
import {
  type CloudStsBlock,
  providerOf,
  providerViolations,
  type StrategyModule,
  type StrategyParts,
} from '../config.ts'
import { type RoleChooser, makeRoleChooser } from '../aws/role-mapping.ts'
import { signRequest } from '../aws/sigv4.ts'
import type { OutgoingRequest, CredentialStrategy } from '../strategy.ts'
import { assumeRole } from '../aws/sts.ts'
import { tokenTypes, withSubjectToken } from '../subject.ts'
import { reportObtained } from '../token-strategy.ts'

const marginMs = 300_000
const maxPayloadBytes = 10_485_760
const regionForm = /^[a-z]{2}(-[a-z]+)+-\d+$/
const roleForm = /^arn:(aws|aws-cn|aws-us-gov):iam::\d{12}:role\/[\w+=,.@\-/]+$/

export const cloudSts: StrategyModule = {
  problems({ cloudSts: block }, parts) {
    if (!block) return [{ path: 'cloudSts', message: 'is required' }]
    const { region = '', fallbackRoleArn, sessionDuration = 3600 } = block
    return [
      ...(regionForm.test(region)
        ? []
        : [{ path: 'cloudSts.region', message: 'must be a region such as us-east-1' }]),
      ...(fallbackRoleArn && !roleForm.test(fallbackRoleArn)
        ? [{ path: 'cloudSts.fallbackRoleArn', message: 'must be the ARN of a role' }]
        : []),
      ...(sessionDuration >= 900 && sessionDuration <= 43_200 && Number.isInteger(sessionDuration)
        ? []
        : [
            {
              path: 'cloudSts.sessionDuration',
              message: 'must be a whole number of seconds from 900 to 43200',
            },
          ]),
      ...mappingViolations(block),
      ...providerViolations('cloudSts.subjectProviderName', block.subjectProviderName, parts),
    ]
  },
  make: ({ cloudSts: block = {} }, parts) => new CloudSts(block, parts),
}

function mappingViolations(block: CloudStsBlock): readonly Violation[] {
  const mappings = block.roleMappings ?? []
  if (mappings.length === 0 && !block.fallbackRoleArn)
    return [{ path: 'cloudSts', message: 'set fallbackRoleArn or roleMappings' }]
  const problems = mappings.flatMap(({ roleArn, claim, matcher, priority = 0 }, index) => {
    const field = `cloudSts.roleMappings[${index}]`
    return [
      ...(roleForm.test(roleArn) ? [] : [{ path: `${field}.roleArn`, message: 'must be the ARN of a role' }]),
      ...(Boolean(claim) === Boolean(matcher)
        ? [{ path: field, message: 'set either claim or matcher' }]
        : []),
      ...(priority < 0 ? [{ path: `${field}.priority`, message: 'must not be negative' }] : []),
    ]
  })
  try {
    makeRoleChooser(block)
  } catch (error) {
    problems.push({
      path: 'cloudSts.roleMappings',
      message: error instanceof Error ? error.message : 'cannot compile a matcher',
    })
  }
  return problems
}

class CloudSts implements CredentialStrategy {
  readonly type = 'cloud_sts'
  readonly perCaller = true
  readonly headerNames = ['authorization', 'x-amz-date', 'x-amz-security-token']
  readonly #block: CloudStsBlock
  readonly #parts: StrategyParts
  readonly #roleFor: RoleChooser
  readonly #fingerprint: string
  readonly #used = new WeakMap<OutgoingRequest, UsedCredential>()

  constructor(block: CloudStsBlock, parts: StrategyParts) {
    this.#block = block
    this.#parts = parts
    this.#roleFor = makeRoleChooser(block)
    this.#fingerprint = CredentialCache.key('cloud_sts', JSON.stringify(block))
  }

  async apply(request: OutgoingRequest, caller: Caller | undefined, signal?: AbortSignal): Promise<void> {
    if (caller === undefined) return
    if ((request.body?.length ?? 0) > maxPayloadBytes) {
      throw new GatehouseError('REQUEST_TOO_LARGE', { detail: 'the request is too large to sign' })
    }
    const roleArn = this.#roleFor(caller.claims)
    if (roleArn === undefined) {
      throw new GatehouseError('BACKEND_ROLE_DENIED', {
        detail: 'no role mapping matches this caller, and fallbackRoleArn is not set',
      })
    }
    const used = await this.#assume(roleArn, caller, signal)
    this.#used.set(request, used)
    const { accessKeyId = '', secretAccessKey = '', sessionToken = '' } = used.credential
    const { region = '', service } = this.#block
    const date = new Date(this.#parts.now())
    await signRequest(request, {
      region,
      service: service || 'aws-mcp',
      accessKeyId,
      secretAccessKey,
      sessionToken,
      date,
    })
  }

  refused(request: OutgoingRequest): boolean {
    const used = this.#used.get(request)
    return used !== undefined && this.#parts.cache.refused(used.key, used.credential)
  }

  /** Returns the role's credentials for this caller, from the cache or the token service. */
  async #assume(roleArn: string, caller: Caller, signal: AbortSignal | undefined): Promise<UsedCredential> {
    const { region = '', subjectProviderName, sessionDuration = 3600 } = this.#block
    const { cache, fetch, stsEndpoint, upstream } = this.#parts
    const provider = providerOf(subjectProviderName, this.#parts)
    const subject = { provider, tokenType: tokenTypes.access_token }
    const name = this.#sessionName(caller)
    return withSubjectToken(caller, subject, { upstream, signal }, async (token) => {
      const digest = hash('sha256', token, 'base64url')
      const key = CredentialCache.key(this.#fingerprint, caller.key, roleArn, name, digest)
      const role = {
        endpoint: stsEndpoint(region),
        roleArn,
        sessionName: name,
        webIdentityToken: token,
        durationSeconds: sessionDuration,
      }
      const obtain = () => reportObtained(this.#parts, 'cloud_sts', () => assumeRole(role, fetch))
      return { key, credential: await cache.get(key, marginMs, obtain, signal) }
    })
  }

  #sessionName(caller: Caller): string {
    const claim = this.#block.sessionNameClaim || 'sub'
    const value = caller.claims[claim]
    if (typeof value === 'string' && value !== '') return sessionName(value)
    throw new GatehouseError('SUBJECT_REFUSED', {
      detail: `cannot name the role session: the caller has no ${claim} claim`,
    })
  }
}

/**
 * Returns a valid session name. Invalid characters are replaced, and a 64-bit digest is appended. Two users therefore
 * never share a name, and a user cannot choose a name that collides with another user's name.
 */
export function sessionName(value: string): string {
  if (/^[\w+=,.@-]{2,64}$/.test(value)) return value
  return `${value.replace(/[^\w+=,.@-]+/g, '-').slice(0, 47)}-${hash('sha256', value, 'hex').slice(0, 16)}`
}
