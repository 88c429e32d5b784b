/**
 * AssumeRoleWithWebIdentity: sends an unsigned form POST to the region's token service and reads the XML response.
 *
 * Extracts the required elements with fixed patterns and ignores the rest of the XML. Rejects with the GatehouseErrors
 * of the outgoing module.
 * Source: the service's API reference, version 2011-06-15.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { OAuthClientError, send } from '../../oauth/index.ts'
import type { Fetch } from '../../net/index.ts'
import type { ObtainedCredential } from '../cache.ts'
import { credentialFailure, unavailable } from '../failure.ts'

export interface AssumeRole {
  readonly endpoint: string
  readonly roleArn: string
  readonly sessionName: string
  readonly webIdentityToken: string
  readonly durationSeconds: number
}

/** Returns the public endpoint of a region. */
export function regionalEndpoint(region: string): string {
  return `https://sts.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}/`
}

/** Returns a credential with the members accessKeyId, secretAccessKey and sessionToken. */
export async function assumeRole(role: AssumeRole, fetch: Fetch): Promise<ObtainedCredential> {
  const body = new URLSearchParams({
    Action: 'AssumeRoleWithWebIdentity',
    Version: '2011-06-15',
    RoleArn: role.roleArn,
    RoleSessionName: role.sessionName,
    WebIdentityToken: role.webIdentityToken,
    DurationSeconds: String(role.durationSeconds),
  })
  const response = await send('the token service', role.endpoint, { method: 'POST', body }, { fetch }).catch(
    (error: unknown) => Promise.reject(credentialFailure(error, { subject: false })),
  )
  const text = await response.text()
  if (response.status !== 200) throw stsError(response.status, elementText(text, 'Code') ?? '')
  const accessKeyId = elementText(text, 'AccessKeyId')
  const secretAccessKey = elementText(text, 'SecretAccessKey')
  const sessionToken = elementText(text, 'SessionToken')
  const expiresAt = Date.parse(elementText(text, 'Expiration') ?? '')
  if (!accessKeyId || !secretAccessKey || !sessionToken || Number.isNaN(expiresAt)) {
    throw authFailure('the response from the token service contains no credentials')
  }
  return { credential: { accessKeyId, secretAccessKey, sessionToken }, expiresAt }
}

const subjectCodes: ReadonlySet<string> = new Set([
  'InvalidIdentityToken',
  'ExpiredTokenException',
  'IDPRejectedClaim',
])
const transientCodes: ReadonlySet<string> = new Set([
  'IDPCommunicationError',
  'Throttling',
  'ServiceUnavailable',
])

function stsError(status: number, code: string): GatehouseError {
  const cause = new OAuthClientError(
    'refused',
    `the token service answered ${status} ${code.slice(0, 100)}`,
    {
      status,
    },
  )
  if (subjectCodes.has(code)) return new GatehouseError('SUBJECT_REFUSED', { cause })
  if (code === 'AccessDenied') {
    return new GatehouseError('BACKEND_ROLE_DENIED', {
      detail: 'this caller is not allowed to assume the role',
      cause,
    })
  }
  if (status >= 500 || status === 429 || transientCodes.has(code)) return unavailable(cause)
  return authFailure('the token service refused the request', cause)
}

function authFailure(text: string, cause?: unknown): GatehouseError {
  return new GatehouseError('BACKEND_AUTH_FAILED', {
    detail: `authentication to the backend failed: ${text}`,
    cause,
  })
}

/** Returns the text of the first element with this name. The element must not contain nested markup. */
function elementText(xml: string, name: string): string | undefined {
  const start = xml.indexOf(`<${name}>`)
  const end = xml.indexOf(`</${name}>`, start)
  if (start < 0 || end < 0) return undefined
  return unescape(xml.slice(start + name.length + 2, end).trim())
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

function unescape(text: string): string {
  return text.replace(/&(lt|gt|amp|quot|apos);/g, (whole, name: string) => entities[name] ?? whole)
}
