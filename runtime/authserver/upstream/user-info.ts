/**
 * Requests a token's user from a userinfo endpoint, and selects the subject, name and email by configured field names.
 *
 * Field lists contain top-level names. The first non-empty value is used. Numbers are converted to text and keep every
 * digit.
 * Source: docs/reference/specification/external-auth.md#userInfo, userInfo; OpenID Connect Core section 5.3; RFC 6750.
 */
import { isFields } from '../../../schemas/index.ts'
import { identifierOf, parseKeepingDigits, type UserInfoSettings } from '../../config/index.ts'
import { type JsonRecord, OAuthClientError, send } from '../../oauth/index.ts'
import type { Fetch } from '../../net/index.ts'

interface UserInfo {
  readonly subject: string | undefined
  readonly name: string | undefined
  readonly email: string | undefined
  readonly claims: JsonRecord
}

const what = 'the userinfo endpoint'

/** Rejects with OAuthClientError. */
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
  const body = parseObject(await response.text())
  return {
    subject: findText(body, config.subjectFields),
    name: findText(body, config.nameFields),
    email: findText(body, config.emailFields),
    claims: body,
  }
}

function parseObject(text: string): JsonRecord {
  try {
    const body = parseKeepingDigits(text)
    if (isFields(body)) return body
  } catch {
    // The code below rejects the value.
  }
  throw new OAuthClientError('protocol', `${what} did not respond with a JSON object`)
}

function findText(body: JsonRecord, fields: readonly string[]): string | undefined {
  for (const field of fields) {
    const value = Object.hasOwn(body, field) ? identifierOf(body[field]) : undefined
    if (value !== undefined) return value
  }
  return undefined
}
