/**
 * Asks a userinfo endpoint who a token belongs to, and picks subject, name and e-mail by configured field names.
 *
 * Field lists hold top-level names; the first non-empty value wins. Numbers become text without losing digits.
 * Source: docs/specification/external-auth.md#userInfo, userInfo; OpenID Connect Core section 5.3; RFC 6750.
 */
import { isFields } from '../../../schemas/index.ts'
import { identifierOf, parseKeepingDigits, type UserInfoSettings } from '../../config/index.ts'
import { type JsonRecord, OAuthClientError, send } from '../../oauth/index.ts'
import type { Fetch } from '../../net/index.ts'

export interface UserInfo {
  readonly subject?: string
  readonly name?: string
  readonly email?: string
}

const what = 'the userinfo endpoint'

/** Rejects with OAuthClientError. Members that the response does not have are absent. */
export async function fetchUserInfo(
  config: UserInfoSettings,
  accessToken: string,
  fetch: Fetch,
): Promise<UserInfo> {
  const response = await send(
    what,
    config.endpointUrl,
    {
      method: config.httpMethod,
      headers: {
        accept: 'application/json',
        ...Object.fromEntries(
          Object.entries(config.additionalHeaders).map(([name, value]) => [name.toLowerCase(), value]),
        ),
        authorization: `Bearer ${accessToken}`,
      },
      ...(config.httpMethod === 'POST' ? { body: '' } : {}),
    },
    { fetch },
  )
  if (response.status >= 500 || response.status === 429) {
    throw new OAuthClientError('unreachable', `${what} answered with status ${response.status}`)
  }
  if (response.status !== 200)
    throw new OAuthClientError('refused', `${what} answered with status ${response.status}`)
  const body = parse(await response.text())
  return {
    ...present('subject', pick(body, config.subjectFields)),
    ...present('name', pick(body, config.nameFields)),
    ...present('email', pick(body, config.emailFields)),
  }
}

function parse(text: string): JsonRecord {
  try {
    const body = parseKeepingDigits(text)
    if (isFields(body)) return body
  } catch {
    // Falls through to the one refusal.
  }
  throw new OAuthClientError('protocol', `${what} did not respond with a JSON object`)
}

function pick(body: JsonRecord, fields: readonly string[]): string | undefined {
  for (const field of fields) {
    const value = Object.hasOwn(body, field) ? identifierOf(body[field]) : undefined
    if (value !== undefined) return value
  }
  return undefined
}

function present<K extends string>(name: K, value: string | undefined): { readonly [P in K]?: string } {
  // oxlint-disable-next-line typescript/no-unsafe-type-assertion -- the computed key is exactly K
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: string }
}
