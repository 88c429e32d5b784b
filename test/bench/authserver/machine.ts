/** Tokens for clients without a user: the grant client_credentials with a secret and with a signed assertion. */
import {
  assertionType,
  makeKey,
  newSecret,
  signAssertion,
  type TestKey,
} from '../../helpers/authserver/declared-client.ts'
import type { Http } from './http.ts'

/** One client may present 600 assertions per minute. */
export const keyJobCount = 20

/** Credentials of the clients `secret-job` and `key-job-…`. */
export interface Machine {
  readonly secret: string
  readonly key: TestKey
}

export async function makeMachine(): Promise<Machine> {
  return { secret: newSecret(), key: await makeKey() }
}

export async function tokenWithSecret(http: Http, issuer: string, { secret }: Machine): Promise<void> {
  const authorization = `Basic ${Buffer.from(`secret-job:${secret}`).toString('base64')}`
  await requestToken(http, issuer, {}, { authorization })
}

/** Requests a token as client number `number`. */
export async function tokenWithKey(
  http: Http,
  issuer: string,
  { key }: Machine,
  number: number,
): Promise<void> {
  const clientId = `key-job-${number % keyJobCount}`
  const assertion = await signAssertion(key, { clientId, issuer })
  await requestToken(http, issuer, { client_assertion_type: assertionType, client_assertion: assertion })
}

async function requestToken(
  http: Http,
  issuer: string,
  form: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): Promise<void> {
  const body = new URLSearchParams({ grant_type: 'client_credentials', ...form }).toString()
  const got = await http.post(`${issuer}/oauth/token`, body, headers)
  if (got.status !== 200) throw new Error(`client credentials: ${got.status} ${got.text}`)
}
