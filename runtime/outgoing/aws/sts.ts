/**
 * AssumeRoleWithWebIdentity: one unsigned form POST to the region's token service, answered in XML.
 *
 * Reads the four members that are needed with fixed patterns; nothing else of the XML is interpreted. Rejects with
 * GatehouseError in the classes of the outgoing module. Source: the service's API reference, version 2011-06-15.
 */
import { GatehouseError } from '../../../schemas/index.ts'
import { OAuthClientError, send } from '../../oauth/index.ts'
import type { Fetch } from '../../net/index.ts'
import type { Obtained } from '../cache.ts'
import { credentialFailure, unavailable } from '../failure.ts'

export interface AssumeRole {
  readonly endpoint: string
  readonly roleArn: string
  readonly sessionName: string
  readonly webIdentityToken: string
  readonly durationSeconds: number
}

/** The public endpoint of a region. */
export function regionalEndpoint(region: string): string {
  return `https://sts.${region}.amazonaws.com${region.startsWith('cn-') ? '.cn' : ''}/`
}

/** Members of the credential: accessKeyId, secretAccessKey, sessionToken. */
export async function assumeRole(role: AssumeRole, fetch: Fetch): Promise<Obtained> {
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
  if (response.status !== 200) throw refusal(response.status, element(text, 'Code') ?? '')
  const accessKeyId = element(text, 'AccessKeyId')
  const secretAccessKey = element(text, 'SecretAccessKey')
  const sessionToken = element(text, 'SessionToken')
  const expiresAt = Date.parse(element(text, 'Expiration') ?? '')
  if (!accessKeyId || !secretAccessKey || !sessionToken || Number.isNaN(expiresAt)) {
    throw failed('the token service sent no credentials')
  }
  return { credential: { accessKeyId, secretAccessKey, sessionToken }, expiresAt }
}

const subjectCodes: ReadonlySet<string> = new Set([
  'InvalidIdentityToken',
  'ExpiredTokenException',
  'IDPRejectedClaim',
])
const laterCodes: ReadonlySet<string> = new Set(['IDPCommunicationError', 'Throttling', 'ServiceUnavailable'])

function refusal(status: number, code: string): GatehouseError {
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
      detail: 'the role may not be assumed by this caller',
      cause,
    })
  }
  if (status >= 500 || status === 429 || laterCodes.has(code)) return unavailable(cause)
  return failed('the token service refused the request', cause)
}

function failed(text: string, cause?: unknown): GatehouseError {
  return new GatehouseError('BACKEND_AUTH_FAILED', {
    detail: `authentication to the backend failed: ${text}`,
    cause,
  })
}

/** Text of the first element of this name, which holds no markup of its own. */
function element(xml: string, name: string): string | undefined {
  const start = xml.indexOf(`<${name}>`)
  const end = xml.indexOf(`</${name}>`, start)
  if (start < 0 || end < 0) return undefined
  return unescape(xml.slice(start + name.length + 2, end).trim())
}

const entities: Readonly<Record<string, string>> = { lt: '<', gt: '>', amp: '&', quot: '"', apos: "'" }

function unescape(text: string): string {
  return text.replace(/&(lt|gt|amp|quot|apos);/g, (whole, name: string) => entities[name] ?? whole)
}
