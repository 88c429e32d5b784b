/** One whole login of a browser and a client: authorize, page, approval, callback, token. */
import { createHash, randomBytes } from 'node:crypto'
import type { Http } from './http.ts'

export interface Tokens {
  readonly access_token: string
  readonly refresh_token: string
}

const redirectUri = 'http://127.0.0.1:33418/callback'

/** Returns a new client id. `number` selects the caller's address, because limits apply to each caller. */
export async function register(http: Http, issuer: string, number: number): Promise<string> {
  const body = JSON.stringify({ client_name: 'Bench', redirect_uris: [redirectUri] })
  const headers = { 'content-type': 'application/json', ...from(number) }
  const got = await http.post(`${issuer}/oauth/register`, body, headers)
  if (got.status !== 201) throw new Error(`registration: ${got.status} ${got.text}`)
  return (JSON.parse(got.text) as { client_id: string }).client_id
}

/** Signs in user number `number`. */
export async function login(http: Http, issuer: string, clientId: string, number: number): Promise<Tokens> {
  const verifier = randomBytes(32).toString('base64url')
  const start = new URLSearchParams({
    response_type: 'code',
    client_id: clientId,
    redirect_uri: redirectUri,
    scope: 'openid offline_access',
    state: 'state',
    code_challenge: createHash('sha256').update(verifier).digest('base64url'),
    code_challenge_method: 'S256',
  })
  const begun = await http.get(`${issuer}/oauth/authorize?${start.toString()}`, from(number))
  const page = await http.get(begun.location, { accept: 'text/html' })
  const field = (name: string): string =>
    new RegExp(`name="${name}" value="([^"]*)"`).exec(page.text)?.[1] ?? ''
  const form = new URLSearchParams({ request: field('request'), form: field('form'), action: 'approve' })
  const approved = await http.post(`${issuer}/oauth/consent`, form.toString(), { cookie: jar(page.cookies) })
  const asked = new URL(approved.location).searchParams
  const response = new URLSearchParams({
    state: asked.get('state') ?? '',
    code: `user-${number}.${asked.get('nonce') ?? ''}`,
  })
  const back = await http.get(`${issuer}/oauth/callback?${response.toString()}`, {
    cookie: jar(approved.cookies),
  })
  const redeemed = await http.post(
    `${issuer}/oauth/token`,
    new URLSearchParams({
      grant_type: 'authorization_code',
      client_id: clientId,
      code: new URL(back.location).searchParams.get('code') ?? '',
      code_verifier: verifier,
      redirect_uri: redirectUri,
    }).toString(),
  )
  if (redeemed.status !== 200) throw new Error(`token: ${redeemed.status} ${redeemed.text}`)
  return JSON.parse(redeemed.text) as Tokens
}

export async function refresh(
  http: Http,
  issuer: string,
  clientId: string,
  refreshToken: string,
): Promise<Tokens> {
  const form = { grant_type: 'refresh_token', client_id: clientId, refresh_token: refreshToken }
  const got = await http.post(`${issuer}/oauth/token`, new URLSearchParams(form).toString())
  if (got.status !== 200) throw new Error(`refresh: ${got.status} ${got.text}`)
  return JSON.parse(got.text) as Tokens
}

function from(number: number): Record<string, string> {
  return { 'x-forwarded-for': `10.${(number >> 16) & 255}.${(number >> 8) & 255}.${number & 255}` }
}

function jar(cookies: readonly string[]): string {
  return cookies.map((line) => line.split(';', 1)[0]).join('; ')
}
